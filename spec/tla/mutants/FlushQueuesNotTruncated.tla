----------------------- MODULE FlushQueuesNotTruncated -----------------------
(* Recovery keeps the queue entries of records that the crash removed from the log. *)
EXTENDS MCFlush

MutantPointsIntoLog(p) ==
    p = p
==============================================================================
