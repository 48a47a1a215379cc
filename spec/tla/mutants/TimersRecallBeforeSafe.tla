----------------------- MODULE TimersRecallBeforeSafe -----------------------
(* The broker answers a recall before the log is safe. *)
EXTENDS MCTimers

MutantAcknowledgeRecall(t) ==
    /\ phase[t] \in {"sent", "acked"}
    /\ Has("recall", t, 0, Len(log))
    /\ phase' = [phase EXCEPT ![t] = "recalled"]
    /\ UNCHANGED <<log, begin, safe, memory, now, asked>>
==============================================================================
