------------------------ MODULE RetryCommitsTheLast --------------------------
(* The committed offset is that after the last message that is done, not that of the first one that is not. *)
EXTENDS MCRetry

MutantPassed ==
    {i \in 1..safe : InQueue(i) /\ \E j \in done : log[j].kind = log[i].kind /\ i <= j}
==============================================================================
