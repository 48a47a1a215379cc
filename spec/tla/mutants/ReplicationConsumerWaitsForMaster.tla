------------------ MODULE ReplicationConsumerWaitsForMaster ------------------
(* Consumers do not move to the slave. *)
EXTENDS MCReplication

MutantDeliver(n) ==
    /\ n = "master"
    /\ phase[n] = "up"
    /\ Len(seen) < ReadLimit(n)
    /\ seen' = Append(seen, log[n][Len(seen) + 1])
    /\ UNCHANGED <<modes, phase, files, connection, masterMemory, slaveMemory, answer, history>>
==============================================================================
