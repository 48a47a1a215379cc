------------------------ MODULE TimersTruncatedBelow ------------------------
(* The table is a file of its own, which is not cut when a crash cuts the log (issue 10668). *)
EXTENDS MCTimers

MutantCrash(length) ==
    /\ length \in safe..Len(log)
    /\ log' = SubSeq(log, 1, length)
    /\ ready' = FALSE
    /\ UNCHANGED <<begin, safe, read, waiting, now, producer>>

MutantRead ==
    /\ ~ready
    /\ ready' = TRUE
    /\ waiting' = {i \in waiting : i <= Len(log)}
    /\ UNCHANGED <<log, begin, safe, read, now, producer>>
==============================================================================
