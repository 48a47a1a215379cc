------------------------- MODULE RetryOneTopicRead ---------------------------
(* The member does not subscribe to the retry topic of its group. *)
EXTENDS MCRetry

MutantInQueue(i) ==
    log[i].kind = "topic"
==============================================================================
