------------------ MODULE ReplicationSlaveStartsOver ------------------
(* A slave that lost its connection deletes its log and copies its master's from the start. *)
EXTENDS MCReplication

MutantHousekeeping(n) ==
    /\ connected[n] /\ ~intact
    /\ Close(n)
    /\ verified' = (verified /\ n # "slave")
    /\ IF n = "slave"
       THEN log' = [log EXCEPT ![n] = <<>>] /\ flushed' = [flushed EXCEPT ![n] = 0]
       ELSE UNCHANGED <<log, flushed>>
    /\ UNCHANGED <<modes, phase, committed, masterMemory, refused, clients, history>>
=======================================================================
