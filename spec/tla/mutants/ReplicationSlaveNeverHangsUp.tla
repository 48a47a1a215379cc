-------------------- MODULE ReplicationSlaveNeverHangsUp --------------------
(* A slave does not notice that its master is gone, and waits on a dead connection. *)
EXTENDS MCReplication

MutantHousekeeping(n) ==
    /\ n = "master"
    /\ connected[n] /\ ~intact
    /\ Close(n)
    /\ UNCHANGED <<modes, phase, files, masterMemory, slaveMemory, clients, history>>
=============================================================================
