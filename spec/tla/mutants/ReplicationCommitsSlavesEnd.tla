--------------------- MODULE ReplicationCommitsSlavesEnd ---------------------
(* A consumer that moves to the slave commits the end of the slave's log instead of its own position. *)
EXTENDS MCReplication

MutantCommitOffset(n) ==
    /\ phase[n] = "up"
    /\ committed[n] < Len(log[n])
    /\ committed' = [committed EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<modes, phase, log, flushed, connection, masterMemory, slaveMemory, clients, history>>
==============================================================================
