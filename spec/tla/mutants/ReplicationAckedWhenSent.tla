---------------------- MODULE ReplicationAckedWhenSent ----------------------
(* A sent record counts as acknowledged; the slave's report is not awaited. *)
EXTENDS MCReplication

MutantTransferRecord ==
    /\ intact /\ sent # NotRequested
    /\ sent < Len(log["master"])
    /\ network' = network \cup {Transfer(sent, log["master"][sent + 1])}
    /\ sent' = sent + 1
    /\ acked' = Max(acked, sent')
    /\ UNCHANGED <<modes, phase, files, connected, intact, request, slaveMemory, clients, history>>
=============================================================================
