-------------------------- MODULE OrderLockShipped ---------------------------
(* A deviation of released consumers: while messages are cached, a dropped queue is unlocked 20 s later. In the
   meantime the member may gain and lock the queue again. It then unlocks a queue that it is consuming. *)
EXTENDS MCOrderLock

\* The member does not wait for its pending unlock.
ShippedGain(m) ==
    /\ m \notin assigned
    /\ assigned' = assigned \cup {m}
    /\ UNCHANGED <<leaving, holder, held, asking, asked, trust, calls, lostLock>>

\* Only the previous call must have returned. A member that owns the queue again may be in another call.
ShippedMayUnlock(m) == m \in leaving /\ (m \notin calls \/ m \in assigned) /\ asking[m] = "no"

\* The unlock does not affect the trust in a lock that was granted since.
ShippedLeft(m) ==
    /\ leaving' = leaving \ {m}
    /\ trust' = IF m \in assigned THEN trust ELSE [trust EXCEPT ![m] = LockTrust]
    /\ UNCHANGED <<assigned, asking, asked, calls, lostLock>>
==============================================================================
