------------------------ MODULE ReplicationLostWakeUp ------------------------
(* An acknowledgement wakes only the send that ends exactly at its position, and a wait has no deadline. *)
EXTENDS MCReplication

MutantReplicaReached(m) ==
    role = "SYNC_MASTER" => Position(m) = acked

MutantSlaveTimeout(m) ==
    FALSE
==============================================================================
