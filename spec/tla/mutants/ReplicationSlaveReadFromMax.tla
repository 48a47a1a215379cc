--------------------- MODULE ReplicationSlaveReadFromMax ---------------------
(* A consumer that moves to the slave receives the newest record first. *)
EXTENDS MCReplication

MutantDeliver(n) ==
    /\ phase[n] = "up"
    /\ Len(seen) < ReadLimit(n)
    /\ seen' = Append(seen, log[n][IF n = "slave" THEN Len(log[n]) ELSE Len(seen) + 1])
    /\ UNCHANGED <<modes, phase, files, connection, masterMemory, slaveMemory, answer, history>>
==============================================================================
