---------------------- MODULE LeaderLeaseNeverHandsOver ----------------------
(* A leader waits for the answer of its successor for ever. *)
EXTENDS MCLeaderLease

MutantHandOver(n) == FALSE /\ UNCHANGED vars
==============================================================================
