------------------- MODULE QueueChoiceRetryForgetsPenalty --------------------
(* Only the first attempt uses the latency table. *)
EXTENDS MCQueueChoice

MutantEligible ==
    IF strategy /\ Available # {} /\ tried = <<>> THEN Available ELSE route
==============================================================================
