-------------------- MODULE GuaranteeAckBeforeReplication --------------------
(* SYNC_MASTER does not wait for the slave, as in released 5.x with inSyncReplicas = 1. *)
EXTENDS MCGuarantee

MutantReplicatedFor(m) ==
    TRUE
==============================================================================
