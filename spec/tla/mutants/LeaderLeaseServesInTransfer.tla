--------------------- MODULE LeaderLeaseServesInTransfer ---------------------
(* A leader that transfers its leadership goes on answering clients. *)
EXTENDS MCLeaderLease

MutantServes(n) == role[n] = "LEADER" /\ IsQuorum(answered[n] \cup {n}) /\ term[n] \in commits
==============================================================================
