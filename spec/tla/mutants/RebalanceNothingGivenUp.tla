---------------------- MODULE RebalanceNothingGivenUp ------------------------
(* A member keeps the queues that are no longer in its share. *)
EXTENDS MCRebalance

MutantRebalance(m, b) ==
    /\ m \in alive
    /\ basis[m] # Basis(b, m)
    /\ share' = [share EXCEPT ![m] = @ \cup Share(b, m)]
    /\ basis' = [basis EXCEPT ![m] = Basis(b, m)]
    /\ UNCHANGED <<queues, alive, known, route>>
==============================================================================
