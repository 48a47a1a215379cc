------------------------- MODULE ReplicationShipped -------------------------
(* Replication in released brokers, where it is weaker. Each configuration uses one of these weaknesses. *)
EXTENDS MCReplication

(* 5.x: SYNC_MASTER waits for inSyncReplicas members. The default is one, which is the master itself. *)

ShippedReplicaReached(m) ==
    TRUE

ShippedNewRequest ==
    Waits

(* All releases: a slave reports the length of its log. The master counts that report as an
   acknowledgement, and in 5.x any later report, even if it lies beyond the master's own end (issues 1155
   and 3015). *)

ShippedFirstReport(length) ==
    length

ShippedAcceptReport(frame) ==
    /\ frame \in network
    /\ connected["master"] /\ sent = NotRequested
    /\ frame.kind = "report"
    /\ sent' = frame.position
    /\ acked' = Max(acked, frame.position)
    /\ UNCHANGED <<modes, phase, files, connection, request, slaveMemory, clients, history>>

ShippedRefuseReport(frame) ==
    FALSE

(* All releases: the port of slaves authenticates no peer, so any peer that reaches it counts as a slave. *)

ShippedStrangerAcknowledges ==
    /\ phase["master"] = "up"
    /\ log["master"] # <<>>
    /\ acked' = Len(log["master"])
    /\ faults' = [faults EXCEPT !.strangers = @ + 1]
    /\ UNCHANGED <<modes, phase, files, connection, sent, request, slaveMemory, clients, held, forked, recalled>>

(* All releases: the slave compares only the position of a frame with the length of its log. *)

ShippedContinues(frame) ==
    frame.position = Len(log["slave"])

=============================================================================
