----------------------- MODULE QueueChoiceFirstAvoided -----------------------
(* What a retry avoids is set by the first failure and never again. *)
EXTENDS MCQueueChoice

MutantWanted ==
    IF tried = <<>> \/ Eligible = {tried[1]} THEN Eligible ELSE Eligible \ {tried[1]}
==============================================================================
