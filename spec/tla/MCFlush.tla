------------------------------- MODULE MCFlush -------------------------------
(* Flush, bounded: the number of crashes is limited. Messages bounds everything else. *)
EXTENDS Flush

CONSTANT MaxCrashes

MayCrash == crashes.process + crashes.system < MaxCrashes

MCProcessCrash == MayCrash /\ ProcessCrash
MCOsCrash(n, torn, kept) == MayCrash /\ OsCrash(n, torn, kept)
MCPowerLoss == MayCrash /\ PowerLoss

\* The images of the queues that MCNext tries: one entry more than the longest queue has, so that a guard of
\* SystemCrash is tried where it is false.
EntriesMax == Min(Max({Len(queue[q]) : q \in Queues}) + 1, Cardinality(Messages))

MCNext ==
    \/ Serve \/ Consume \/ Shutdown \/ Recover
    \/ MCProcessCrash
    \/ /\ MayCrash \* MCOsCrash would evaluate it for each image
       /\ \E n \in 0..Len(log), torn \in BOOLEAN, kept \in [Queues -> 0..EntriesMax] : OsCrash(n, torn, kept)
    \/ MCPowerLoss

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it a liveness property fails. *)
WithoutFlushFairness == MCSpec /\ AnswerFairness /\ DispatchFairness /\ DeliverFairness /\ RecoverFairness
WithoutAnswerFairness == MCSpec /\ FlushFairness /\ DispatchFairness /\ DeliverFairness /\ RecoverFairness
WithoutDispatchFairness == MCSpec /\ FlushFairness /\ AnswerFairness /\ DeliverFairness /\ RecoverFairness
WithWeakDeliverFairness ==
    /\ MCSpec /\ FlushFairness /\ AnswerFairness /\ DispatchFairness /\ RecoverFairness
    /\ \A q \in Queues : WF_seen(Deliver(q))
WithoutRecoverFairness == MCSpec /\ FlushFairness /\ AnswerFairness /\ DispatchFairness /\ DeliverFairness

(* Flush refines Delivery. The abstract queues contain the records of the log, dispatched or not. Of all
   statuses, only SEND_OK is a promise. The promise ends as in Promised. Only whole records count; a torn
   record is ignored. *)
AbstractAnswer(status) ==
    CASE status = "SEND_OK" -> "acked"
      [] status = "FLUSH_DISK_TIMEOUT" -> "unknown"
      [] OTHER -> status

MessagesOf(q) ==
    LET records == SelectSeq(log, LAMBDA record : record.queue = q)
    IN  [i \in 1..Len(records) |-> records[i].message]

Abstract == INSTANCE Delivery WITH
    answer <- [m \in Messages |-> AbstractAnswer(answer[m])],
    sends <- [m \in Messages |-> IF answer[m] = "unsent" THEN 0 ELSE 1],
    queue <- [q \in Queues |-> MessagesOf(q)],
    promise <- Promised,
    serving <- phase = "running"

abstracted == <<mode, phase, log, committed, answer, seen, crashes>> \* the variables that Abstract is computed from

\* UNCHANGED comes first only because it takes TLC less time: most steps change nothing of Delivery.
RefinesDelivery ==
    Abstract!Init /\ [][UNCHANGED abstracted \/ UNCHANGED Abstract!vars \/ Abstract!Next]_Abstract!vars

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoTimeout == Answered("FLUSH_DISK_TIMEOUT") = {}
NoUnknown == Answered("unknown") = {}
NoCleanExit == abort
NoProcessCrash == crashes.process = 0
NoSystemCrash == crashes.system = 0
NoTornRecord == \A i \in 1..Len(log) : log[i] # Torn
NoLostRecord == phase = "down" => Len(WholeLog) = Len(appended)
NoQueueAhead == \A q \in Queues : \A i \in 1..Len(queue[q]) : queue[q][i] <= Len(log)
NoQueueBehind == phase = "log_recovered" => \A i \in 1..Len(log) : \E q \in Queues : LastQueued(q) >= i
NoCrashInRecovery == phase = "dispatching" => crashes.process + crashes.system < 2
NoOffsetBeyondEnd == phase = "running" => \A q \in Queues : Len(seen[q]) <= Len(queue[q])
NoOffsetLost == [][\A q \in Queues : committed'[q] >= committed[q]]_vars
=============================================================================
