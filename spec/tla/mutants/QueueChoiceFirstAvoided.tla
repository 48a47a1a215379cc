----------------------- MODULE QueueChoiceFirstAvoided -----------------------
(* A retry always avoids the broker of the first failure, even after later failures. *)
EXTENDS MCQueueChoice

MutantWanted ==
    IF tried = <<>> \/ Eligible = {tried[1]} THEN Eligible ELSE Eligible \ {tried[1]}
==============================================================================
