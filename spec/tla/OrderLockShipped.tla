-------------------------- MODULE OrderLockShipped ---------------------------
(* What released consumers do otherwise: while messages are cached, a dropped queue is unlocked 20 s later. *)
(* Meanwhile the member may have got it back and locked it, and then unlocks what it is consuming.          *)
EXTENDS MCOrderLock

\* It does not wait for an unlock that is still to come.
ShippedGain(m) ==
    /\ m \notin assigned
    /\ assigned' = assigned \cup {m}
    /\ UNCHANGED <<leaving, holder, held, asking, asked, trust, calls, robbed>>

\* The listener that must have returned is the one from before; who has got the queue back may be in another call.
ShippedMayUnlock(m) == m \in leaving /\ (m \notin calls \/ m \in assigned) /\ asking[m] = "no"

\* The unlock knows nothing of the trust in a lock that was granted since.
ShippedLeft(m) ==
    /\ leaving' = leaving \ {m}
    /\ trust' = IF m \in assigned THEN trust ELSE [trust EXCEPT ![m] = LockTrust]
    /\ UNCHANGED <<assigned, asking, asked, calls, robbed>>
==============================================================================
