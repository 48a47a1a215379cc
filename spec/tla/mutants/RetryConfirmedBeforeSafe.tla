---------------------- MODULE RetryConfirmedBeforeSafe -----------------------
(* The broker answers before the copy is safe, as releases do. *)
EXTENDS MCRetry

MutantAnswered(p) ==
    p \in sent
==============================================================================
