--------------------- MODULE ReplicationCommitsSlavesEnd ---------------------
(* A consumer that moves to the slave commits the slave's end instead of what it has seen. *)
EXTENDS MCReplication

MutantCommitOffset(n) ==
    /\ phase[n] = "up"
    /\ committed[n] < Len(log[n])
    /\ committed' = [committed EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<modes, phase, log, flushed, connection, masterMemory, slaveMemory, clients, history>>
==============================================================================
