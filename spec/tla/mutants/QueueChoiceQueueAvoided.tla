----------------------- MODULE QueueChoiceQueueAvoided -----------------------
(* A retry avoids the queue of the last attempt, and takes the next one of the same broker. *)
EXTENDS MCQueueChoice

MutantWanted ==
    Eligible
==============================================================================
