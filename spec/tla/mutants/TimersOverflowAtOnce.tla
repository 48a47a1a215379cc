------------------------ MODULE TimersOverflowAtOnce ------------------------
(* A delay that is too long wraps, and the message is due at once (issue 10872). *)
EXTENDS MCTimers

MutantSend(t, delay) ==
    /\ ready
    /\ phase[t] = "new"
    /\ phase' = [phase EXCEPT ![t] = "sent"]
    /\ asked' = [asked EXCEPT ![t] = now + delay]
    /\ log' = Append(log, Record("timer", t, IF delay > DelayMax THEN now ELSE now + delay))
    /\ UNCHANGED <<begin, safe, memory, now>>
==============================================================================
