------------------------- MODULE ReplicationShipped -------------------------
(* Replication as released brokers do it, where that is weaker; each configuration takes one thing of it. *)
EXTENDS MCReplication

(* 5.x: SYNC_MASTER waits for inSyncReplicas members, by default one, the master itself. *)

ShippedReplicaReached(m) ==
    TRUE

ShippedNewRequest ==
    Waits

(* All: a slave reports the length of its log, and the master counts that report, and in 5.x any later one, as an
   acknowledgement, also when it lies beyond the master's own end (issues 1155 and 3015). *)

ShippedFirstReport(length) ==
    length

ShippedAcceptReport(frame) ==
    /\ frame \in network
    /\ connected["master"] /\ sent = Unasked
    /\ frame.kind = "report"
    /\ sent' = frame.position
    /\ acked' = Max(acked, frame.position)
    /\ UNCHANGED <<modes, phase, files, connection, request, slaveMemory, clients, history>>

ShippedRefuseReport(frame) ==
    FALSE

(* All: the slave compares the position of what arrives with its length, and nothing else. *)

ShippedContinues(frame) ==
    frame.position = Len(log["slave"])

=============================================================================
