-------------------- MODULE LeaderLeaseServesBeforeCommit --------------------
(* A new leader answers clients before it has committed an entry of its term. *)
EXTENDS MCLeaderLease

MutantServes(n) == role[n] = "LEADER" /\ IsQuorum(answered[n] \cup {n}) /\ successor[n] = None
==============================================================================
