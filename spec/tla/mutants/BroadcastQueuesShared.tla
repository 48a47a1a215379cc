----------------------- MODULE BroadcastQueuesShared -------------------------
(* A member reads a queue only if no other member reads it, as in cluster mode. *)
EXTENDS MCBroadcast

MutantBegin(m, q) ==
    /\ m \in alive
    /\ q \in exists
    /\ \A n \in Members : next[n][q] = 0
    /\ next' = [next EXCEPT ![m][q] = StartPlace(m, q)]
    /\ file' = [file EXCEPT ![m][q] = StartPlace(m, q)]
    /\ first' = [first EXCEPT ![m][q] = IF @ = 0 THEN StartPlace(m, q) ELSE @]
    /\ UNCHANGED <<topic, alive, old, held, got>>
==============================================================================
