-------------------- MODULE TimersAckedBeforeSafe --------------------
(* The broker answers SEND_OK before the log is safe. *)
EXTENDS MCTimers

MutantAcknowledge(t) ==
    /\ phase[t] = "sent"
    /\ Has("timer", t, 0, Len(log))
    /\ phase' = [phase EXCEPT ![t] = "acked"]
    /\ UNCHANGED <<log, begin, safe, memory, now, asked>>
==============================================================================
