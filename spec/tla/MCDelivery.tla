------------------------------ MODULE MCDelivery ------------------------------
(* Delivery, bounded: the number of sends of a message is limited. Queues grow by one message at a time,
   and each fault changes one thing, such as one queue or one offset. A larger step is equivalent to several of
   these. *)
EXTENDS Delivery

CONSTANT MaxSends

MCRetry(m) == sends[m] < MaxSends /\ Retry(m)

MCStore(q, m) == Store([queue EXCEPT ![q] = Append(@, m)])

\* An upper bound on the length of a queue and of `seen` for that queue.
Longest == MaxSends * Cardinality(Messages)

MCNext ==
    \/ \E m \in Messages : Send(m) \/ MCRetry(m) \/ Acknowledge(m) \/ Fail(m)
    \/ \E q \in Queues, m \in Messages : MCStore(q, m)
    \/ \E q \in Queues : \E i \in 1..Longest : Deliver(q, i)
    \/ \E q \in Queues : \E n \in 0..Longest :
        CommitOffset(q, n) \/ Reset(q, n) \/ CorrectOffset(q, n) \/ Lose(q, n) \/ RollBack(q, n)
    \/ Withdraw \/ Crash \/ Restart

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it AckedDelivered fails. *)
WithoutDeliverFairness == MCSpec /\ RestartFairness /\ ResetsEnd
WithoutRestartFairness == MCSpec /\ DeliverFairness /\ ResetsEnd
WithoutEndOfResets == MCSpec /\ DeliverFairness /\ RestartFairness
WithWeakDeliverFairness ==
    /\ MCSpec /\ RestartFairness /\ ResetsEnd
    /\ \A q \in Queues : WF_vars(Deliver(q, Len(seen[q]) + 1))

(* The steps checked here are steps of the specification that other modules refine: each step of MCNext is
   a step of Next. *)
StepsOfDelivery == [][Next]_vars

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoRetry == \A m \in Messages : sends[m] < 2
NoSecondCopy == \A m \in Messages : Copies(m, queue) < 2
NoUnknownStored == \A m \in Messages : answer[m] = "unknown" => ~Stored(m, queue)
NoWithdrawal == promise
NoCrash == serving
NoAckedGone == \A m \in Acked : Stored(m, queue)
NoGroupBeyondEnd == \A q \in Queues : Len(seen[q]) <= Len(queue[q])
NoPassedBy == \A q \in Queues : \A i \in 1..Len(queue[q]) : i <= Len(seen[q]) => seen[q][i] = queue[q][i]
NoLoss == [][\A q \in Queues : Len(queue'[q]) >= Len(queue[q])]_vars
NoReset == [][\A q \in Queues : ~Reset(q, committed'[q])]_vars
NoRollBack == [][\A q \in Queues : ~RollBack(q, committed'[q])]_vars
=============================================================================
