--------------------- MODULE LeaderLeaseVoterDoesNotWait ---------------------
(* A follower votes in a later term although it has just heard its leader. *)
EXTENDS MCLeaderLease

MutantMayVoteFor(p, n) == term[p] < term[n]
==============================================================================
