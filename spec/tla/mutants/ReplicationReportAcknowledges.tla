-------------------- MODULE ReplicationReportAcknowledges --------------------
(* A slave's first report counts as an acknowledgement, whatever its log contains (as in issues 1155 and
   3015). *)
EXTENDS MCReplication

MutantFirstReport(length) ==
    length

MutantAcceptReport(frame) ==
    /\ frame \in network
    /\ connected["master"] /\ sent = NotRequested
    /\ frame.kind = "report" /\ frame.position <= Len(log["master"])
    /\ sent' = frame.position
    /\ acked' = Max(acked, frame.position)
    /\ UNCHANGED <<modes, phase, files, connection, request, slaveMemory, clients, history>>
==============================================================================
