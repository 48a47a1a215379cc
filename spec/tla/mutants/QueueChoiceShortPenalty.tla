----------------------- MODULE QueueChoiceShortPenalty -----------------------
(* A penalty runs out at twice the speed of its clock. *)
EXTENDS MCQueueChoice

MutantTick ==
    /\ tried = <<>>
    /\ \E b \in Brokers : penalty[b] > 0 \/ owed[b] > 0
    /\ penalty' = Less(Less(penalty))
    /\ owed' = Less(owed)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>
==============================================================================
