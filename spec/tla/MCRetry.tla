-------------------------------- MODULE MCRetry --------------------------------
(* Retry, bounded: the faults, and the records in the log. Liveness needs room for the copies that a fault may add. *)
EXTENDS Retry

CONSTANTS
    FaultsMax,  \* the most faults
    RecordsMax  \* the most records in the log

MCMove(i) == Len(log) < RecordsMax /\ Move(i)

MCSendBack(i) == Len(log) < RecordsMax /\ SendBack(i)

MCCrash(length, old) == faults < FaultsMax /\ Crash(length, old)

MCLose(p) == faults < FaultsMax /\ Lose(p)

MCMemberEnds(old) == faults < FaultsMax /\ MemberEnds(old)

MCNext ==
    \/ \E m \in Msgs : Send(m)
    \/ Secure \/ Tick
    \/ \E i \in 1..RecordsMax :
        MCMove(i) \/ Deliver(i) \/ Succeed(i) \/ Fail(i) \/ MCSendBack(i) \/ Confirm(i) \/ MCLose(i)
    \/ \E length \in 0..RecordsMax, old \in BOOLEAN : MCCrash(length, old)
    \/ \E old \in BOOLEAN : MCMemberEnds(old)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it FailedEnds fails. *)
WithoutSecureFairness == MCSpec /\ Ticks /\ Moves /\ Delivers /\ Returns /\ SendsBack
WithoutTickFairness == MCSpec /\ Secures /\ Moves /\ Delivers /\ Returns /\ SendsBack
WithoutMoveFairness == MCSpec /\ Secures /\ Ticks /\ Delivers /\ Returns /\ SendsBack
WithoutDeliverFairness == MCSpec /\ Secures /\ Ticks /\ Moves /\ Returns /\ SendsBack
WithoutReturnFairness == MCSpec /\ Secures /\ Ticks /\ Moves /\ Delivers /\ SendsBack
WithoutSendBackFairness == MCSpec /\ Secures /\ Ticks /\ Moves /\ Delivers /\ Returns

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoDeadLetter == \A i \in Places : log[i].kind # "dead"
NoSuccessAfterRetry == \A i \in consumed : log[i].kind = "topic"
NoSecondCopy == \A i, j \in Places : i # j /\ log[i].kind = "delay" => log[i].from # log[j].from
NoSecondDeadLetter == Cardinality({i \in Places : log[i].kind = "dead"}) < 2
NoLostCopy == ~\E i \in failed : sent = {} /\ faults = FaultsMax /\ \A j \in Places : log[j].from # i
NoMovedAgain == \A i, j \in Places : i # j /\ log[i].kind = "retry" => log[i].from # log[j].from
NoCallsAtOnce == Cardinality(calls) < 2
NoCommitBehind == ~\E i \in done : ~Before(i) \subseteq done
===============================================================================
