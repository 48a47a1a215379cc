-------------------- MODULE QueueChoiceErrorsNotPenalised --------------------
(* Only slow answers enter the latency table; failures do not. *)
EXTENDS MCQueueChoice

MutantFailed ==
    /\ waiting
    /\ penalty' = penalty
    /\ avoidTicks' = IF strategy THEN [avoidTicks EXCEPT ![Last] = Isolation] ELSE avoidTicks
    /\ tried' = IF Len(tried) = AttemptsMax THEN <<>> ELSE tried
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>
==============================================================================
