----------------------- MODULE LeaderLeaseWithoutLease -----------------------
(* A leader answers clients without knowing that a quorum waits for it. *)
EXTENDS MCLeaderLease

MutantServes(n) == role[n] = "LEADER" /\ term[n] \in commits /\ successor[n] = None
==============================================================================
