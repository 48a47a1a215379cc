----------------------- MODULE FlushQueuesNotTruncated -----------------------
(* Recovery leaves the queue entries of records that the crash took from the log. *)
EXTENDS MCFlush

MutantPointsIntoLog(p) ==
    p = p
==============================================================================
