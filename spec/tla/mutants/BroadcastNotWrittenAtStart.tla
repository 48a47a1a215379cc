--------------------- MODULE BroadcastNotWrittenAtStart ----------------------
(* A member writes its file only after a message. If it ends before, it begins at the end again. *)
EXTENDS MCBroadcast

MutantBegin(m, q) ==
    /\ m \in alive
    /\ q \in exists
    /\ next[m][q] = 0
    /\ next' = [next EXCEPT ![m][q] = StartPlace(m, q)]
    /\ first' = [first EXCEPT ![m][q] = IF @ = 0 THEN StartPlace(m, q) ELSE @]
    /\ UNCHANGED <<topic, alive, old, held, file, got>>
==============================================================================
