-------------------- MODULE RebalanceNotRegisteredAgain ----------------------
(* A member sends heartbeats only until it has its first share. *)
EXTENDS MCRebalance

MutantHeartbeat(m, b) ==
    /\ m \in alive
    /\ ~Knows(b, m)
    /\ basis[m] = NoBasis
    /\ known' = [known EXCEPT ![b] = Append(@, m)]
    /\ UNCHANGED <<queues, alive, route, share, basis>>
==============================================================================
