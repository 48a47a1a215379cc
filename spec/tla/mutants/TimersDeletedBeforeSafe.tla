----------------------- MODULE TimersDeletedBeforeSafe -----------------------
(* A record is deleted when its message is done, although a crash may lose the end. *)
EXTENDS MCTimers

MutantNeeded(i) ==
    \E t \in Msgs :
        /\ Is(i, "timer", t)
        /\ ~Has("timer", t, i, Len(log)) /\ ~Has("final", t, i, Len(log)) /\ ~Has("recall", t, i, Len(log))
==============================================================================
