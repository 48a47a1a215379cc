-------------------- MODULE GuaranteeAckBeforeReplication --------------------
(* SYNC_MASTER waits for nobody, as released 5.x does with inSyncReplicas = 1. *)
EXTENDS MCGuarantee

MutantReplicatedFor(m) ==
    TRUE
==============================================================================
