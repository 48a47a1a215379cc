------------------------ MODULE TimersCopyNotLearned ------------------------
(* A rolled message leaves the table, and its copy is not read into it. *)
EXTENDS MCTimers

MutantLearn ==
    /\ ready
    /\ read < Len(log)
    /\ read' = read + 1
    /\ waiting' =
        IF log[read + 1].kind = "timer" /\ \A t \in log[read + 1].of : ~Has("timer", t, 0, read)
        THEN waiting \cup {read + 1} ELSE waiting
    /\ UNCHANGED <<log, begin, safe, ready, now, producer>>
==============================================================================
