------------------------- MODULE OrderLockNotRenewed -------------------------
(* A member requests the lock until it is granted, and never renews it. *)
EXTENDS MCOrderLock

MutantAsk(m) ==
    /\ m \in assigned
    /\ asking[m] = "no"
    /\ asked[m] = RenewEvery
    /\ asking' = [asking EXCEPT ![m] = IF holder = m THEN "no" ELSE "asked"]
    /\ asked' = [asked EXCEPT ![m] = 0]
    /\ UNCHANGED <<assigned, leaving, holder, held, trust, calls, lostLock>>
==============================================================================
