-------------------------------- MODULE MCGroup --------------------------------
(* Group, bounded like MCDelivery: the number of sends of a message is limited, a queue grows by one
   message at a time, and a fault either shortens one queue, moves one offset back, withdraws the
   promise or stops the broker. *)
EXTENDS Group

CONSTANT MaxSends

MCRetry(m) == sends[m] < MaxSends /\ Retry(m)

MCStore(q, m) == Store([queue EXCEPT ![q] = Append(@, m)])

MCLose(q, length) ==
    /\ length < Len(queue[q])
    /\ Fault(answer, [queue EXCEPT ![q] = Promise!Prefix(@, length)], committed, promise, serving)

MCCrash == serving /\ Fault(answer, queue, committed, promise, FALSE)

MCRollBack(q, offset) ==
    /\ ~serving
    /\ offset < committed[q]
    /\ Fault(answer, queue, [committed EXCEPT ![q] = offset], promise, FALSE)

MCWithdraw == promise /\ Fault(answer, queue, committed, FALSE, serving)

\* An upper bound on the length of a queue and of `seen` for that queue.
Longest == MaxSends * Cardinality(Messages)

MCNext ==
    \/ \E m \in Messages : Send(m) \/ MCRetry(m) \/ Acknowledge(m) \/ Fail(m)
    \/ \E q \in Queues, m \in Messages : MCStore(q, m)
    \/ \E c \in Consumers, q \in Queues : Consume(c, q)
    \/ \E c \in Consumers : ConsumerCrash(c)
    \/ \E q \in Queues :
        \/ CorrectOffset(q)
        \/ \E n \in 0..Longest - 1 : Reset(q, n) \/ MCLose(q, n) \/ MCRollBack(q, n)
    \/ MCWithdraw \/ MCCrash \/ Restart

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it AckedDelivered fails. *)
WithoutRestartFairness == MCSpec /\ StartFairness /\ DeliverFairness /\ CommitFairness /\ OffsetsSettle
WithoutStartFairness == MCSpec /\ RestartFairness /\ DeliverFairness /\ CommitFairness /\ OffsetsSettle
WithoutDeliverFairness == MCSpec /\ RestartFairness /\ StartFairness /\ CommitFairness /\ OffsetsSettle
WithoutCommitFairness == MCSpec /\ RestartFairness /\ StartFairness /\ DeliverFairness /\ OffsetsSettle
WithoutSettledOffsets == MCSpec /\ RestartFairness /\ StartFairness /\ DeliverFairness /\ CommitFairness
WithWeakStartFairness ==
    /\ MCSpec /\ RestartFairness /\ DeliverFairness /\ CommitFairness /\ OffsetsSettle
    /\ \A c \in Consumers, q \in Queues : WF_position(Start(c, q))
WithWeakDeliverFairness ==
    /\ MCSpec /\ RestartFairness /\ StartFairness /\ CommitFairness /\ OffsetsSettle
    /\ \A c \in Consumers, q \in Queues : WF_position(Deliver(c, q))

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoOverlap == \A q \in Queues : \A c, d \in Consumers : c # d /\ Reads(c, q) /\ Reads(d, q) => position[c][q] # position[d][q]
NoReaderAhead == \A q \in Queues : \A c \in Consumers : assigned[q] # c => position[c][q] <= committed[q]
NoRepetitionDue == \A q \in Queues : \A i \in 1..Len(queue[q]) : i <= Len(seen[q]) => due[q][i] = 0
NoWithdrawal == promise
NoCrash == serving
NoReaderBeyondEnd == \A q \in Queues : \A c \in Consumers : position[c][q] <= Len(queue[q])
NoConsumerCrash == [][\A c \in Consumers : ~ConsumerCrash(c)]_vars
NoReset == [][\A q \in Queues : ~Reset(q, committed'[q])]_vars
NoRollBack == [][\A q \in Queues : ~MCRollBack(q, committed'[q])]_vars
NoLoss == [][\A q \in Queues : ~MCLose(q, Len(queue'[q]))]_vars
=============================================================================
