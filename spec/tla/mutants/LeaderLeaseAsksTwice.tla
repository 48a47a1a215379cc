------------------------ MODULE LeaderLeaseAsksTwice -------------------------
(* A second transfer replaces the first, which may still succeed. *)
EXTENDS MCLeaderLease

MutantTransfer(n, p) ==
    /\ role[n] = "LEADER" /\ p # n
    /\ successor' = [successor EXCEPT ![n] = p]
    /\ network' = network \cup {[source |-> n, target |-> p, term |-> term[n], taken |-> FALSE]}
    /\ UNCHANGED <<role, term, leader, answered, commits>>
==============================================================================
