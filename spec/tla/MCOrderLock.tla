----------------------------- MODULE MCOrderLock -----------------------------
(* OrderLock without further bounds: its constants bound everything. *)
EXTENDS OrderLock

CONSTANT Faults \* TRUE if restarts and stalls may lose locks

MCRestart == Faults /\ Restart
MCStall(m) == Faults /\ Stall(m)

MCNext ==
    \/ \E m \in Members :
        \/ Gain(m) \/ Drop(m) \/ Ask(m) \/ LockQueue(m) \/ Hear(m) \/ Lose(m) \/ UnlockQueue(m) \/ LoseUnlock(m)
        \/ Begin(m) \/ End(m) \/ MCStall(m)
    \/ Tick
    \/ MCRestart

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary, and strong where stated: without it the liveness property fails. *)
WithoutTickFairness == MCSpec /\ Asks /\ Answers /\ Receives /\ Begins /\ Ends
WithoutAskFairness == MCSpec /\ TicksOn /\ Answers /\ Receives /\ Begins /\ Ends
WithWeakLockFairness ==
    MCSpec /\ TicksOn /\ Asks /\ (\A m \in Members : WF_vars(LockQueue(m))) /\ Receives /\ Begins /\ Ends
WithWeakReceiveFairness ==
    MCSpec /\ TicksOn /\ Asks /\ Answers /\ (\A m \in Members : WF_vars(Hear(m))) /\ Begins /\ Ends
WithWeakBeginFairness ==
    MCSpec /\ TicksOn /\ Asks /\ Answers /\ Receives /\ (\A m \in Members : WF_vars(Begin(m))) /\ Ends
WithoutEndFairness == MCSpec /\ TicksOn /\ Asks /\ Answers /\ Receives /\ Begins

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoTwoOwners == Cardinality(assigned) < 2
NoRefusal == \A m \in Members : asking[m] # "refused"
NoLapse == \A m \in assigned : holder = m => Trusts(m)
NoExpiry == held < LockLease
NoTakeOver == ~(held = LockLease /\ \E m \in Members : asking[m] = "asked" /\ m # holder)
NoLateReturn == calls \cap leaving = {}
NoRestart == ~(holder = NoMember /\ lostLock # {})
NoStall == ~(holder \in lostLock)
NoOverlapAfterFault == Cardinality(calls) < 2
=============================================================================
