----------------------- MODULE BroadcastOneFileForAll ------------------------
(* All members store their offsets in one place, as in cluster mode. *)
EXTENDS MCBroadcast

MutantPersist(m, q) ==
    /\ next[m][q] # 0
    /\ file[m][q] # Offset(m, q)
    /\ file' = [n \in Members |-> IF file[n][q] = 0 THEN file[n] ELSE [file[n] EXCEPT ![q] = Offset(m, q)]]
    /\ UNCHANGED <<topic, alive, old, next, held, first, got>>
==============================================================================
