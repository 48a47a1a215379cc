----------------------- MODULE LeaderLeaseVotesConfirm -----------------------
(* A new leader counts its votes as answers, but a voter waits for no leader yet. *)
EXTENDS MCLeaderLease

MutantElect(n, voters) ==
    /\ role[n] = "CANDIDATE"
    /\ voters \subseteq Peers(n) /\ IsQuorum(voters \cup {n})
    /\ \A p \in voters : MayVoteFor(p, n)
    /\ role' = [p \in Nodes |-> IF p = n THEN "LEADER" ELSE IF p \in voters THEN "VOTER" ELSE role[p]]
    /\ term' = [p \in Nodes |-> IF p \in voters THEN term[n] ELSE term[p]]
    /\ leader' = [p \in Nodes |-> IF p \in voters \cup {n} THEN None ELSE leader[p]]
    /\ answered' = [p \in Nodes |-> IF p = n THEN voters ELSE IF p \in voters THEN {} ELSE answered[p]]
    /\ successor' = [p \in Nodes |-> IF p \in voters THEN None ELSE successor[p]]
    /\ UNCHANGED <<network, commits>>
==============================================================================
