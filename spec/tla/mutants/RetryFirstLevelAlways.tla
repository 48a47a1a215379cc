----------------------- MODULE RetryFirstLevelAlways -------------------------
(* Each retry has the first delay. *)
EXTENDS MCRetry

MutantLevel(retry) ==
    1
==============================================================================
