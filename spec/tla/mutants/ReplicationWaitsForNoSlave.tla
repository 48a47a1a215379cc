--------------------- MODULE ReplicationWaitsForNoSlave ----------------------
(* SYNC_MASTER counts only the master and does not wait for a slave (as 5.x with inSyncReplicas = 1). *)
EXTENDS MCReplication

MutantReplicaReached(m) ==
    TRUE
==============================================================================
