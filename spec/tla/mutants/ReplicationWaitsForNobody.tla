---------------------- MODULE ReplicationWaitsForNobody ----------------------
(* SYNC_MASTER counts the master alone and waits for nobody (as 5.x with inSyncReplicas = 1). *)
EXTENDS MCReplication

MutantReplicaReached(m) ==
    TRUE
==============================================================================
