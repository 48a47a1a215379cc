--------------------- MODULE ReplicationStrangerCounted ---------------------
(* An acknowledgement of any sender counts: a stranger acknowledges the master's whole log and stores nothing. *)
EXTENDS MCReplication

MutantStrangerAcknowledges ==
    /\ phase["master"] = "up"
    /\ log["master"] # <<>>
    /\ acked' = Len(log["master"])
    /\ faults' = [faults EXCEPT !.strangers = @ + 1]
    /\ UNCHANGED <<modes, phase, files, connection, sent, request, slaveMemory, clients, held, forked, recalled>>
==============================================================================
