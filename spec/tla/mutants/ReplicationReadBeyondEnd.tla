---------------------- MODULE ReplicationReadBeyondEnd ----------------------
(* A slave serves the bytes behind the end of its log, which are mapped but were never written. *)
EXTENDS MCReplication

MutantDeliver(n) ==
    /\ phase[n] = "up"
    /\ Len(seen) < Cardinality(Messages)
    /\ seen' = Append(seen, IF Len(seen) < ReadLimit(n) THEN log[n][Len(seen) + 1] ELSE "zeroes")
    /\ UNCHANGED <<modes, phase, files, connection, masterMemory, slaveMemory, answer, history>>
=============================================================================
