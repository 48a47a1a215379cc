------------------- MODULE QueueChoiceRetryForgetsPenalty --------------------
(* The latency table is asked for the first attempt only. *)
EXTENDS MCQueueChoice

MutantEligible ==
    IF strategy /\ Available # {} /\ tried = <<>> THEN Available ELSE route
==============================================================================
