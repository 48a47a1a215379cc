----------------------- MODULE QueueChoiceShortPenalty -----------------------
(* A penalty runs out at twice the speed of its clock. *)
EXTENDS MCQueueChoice

MutantTick ==
    /\ tried = <<>>
    /\ \E b \in Brokers : penalty[b] > 0 \/ avoidTicks[b] > 0
    /\ penalty' = Less(Less(penalty))
    /\ avoidTicks' = Less(avoidTicks)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>
==============================================================================
