------------------------ MODULE RetryFileAheadOfLog --------------------------
(* The progress of the levels is written before the log is flushed. *)
EXTENDS MCRetry

MutantRestorable ==
    moved
==============================================================================
