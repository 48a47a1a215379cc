-------------------- MODULE QueueChoiceErrorsNotPenalised --------------------
(* Only slow answers enter the latency table; failures do not. *)
EXTENDS MCQueueChoice

MutantFailed ==
    /\ waiting
    /\ penalty' = penalty
    /\ owed' = IF strategy THEN [owed EXCEPT ![Last] = Isolation] ELSE owed
    /\ tried' = IF Len(tried) = AttemptsMax THEN <<>> ELSE tried
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>
==============================================================================
