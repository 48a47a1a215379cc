-------------------- MODULE LeaderLeaseGoesOnInLaterTerm ---------------------
(* A refusal ends the transfer, although the node that refuses is in a later term. *)
EXTENDS MCLeaderLease

MutantRefuse(m) ==
    /\ m \in network
    /\ network' = network \ {m}
    /\ GoOn(m.source, m.term)
    /\ UNCHANGED <<role, term, leader, answered, commits>>
==============================================================================
