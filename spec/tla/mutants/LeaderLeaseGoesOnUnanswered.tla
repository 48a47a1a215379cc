--------------------- MODULE LeaderLeaseGoesOnUnanswered ---------------------
(* A leader whose transfer is not answered in time serves clients again, instead of stepping down. *)
EXTENDS MCLeaderLease

MutantHandOver(n) ==
    /\ successor[n] # None
    /\ successor' = [successor EXCEPT ![n] = None]
    /\ UNCHANGED <<role, term, leader, answered, network, commits>>
==============================================================================
