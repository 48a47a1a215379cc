-------------------- MODULE ReplicationAckOfReplicaAlone --------------------
(* With SYNC_MASTER, the answer does not wait for SYNC_FLUSH. *)
EXTENDS MCReplication

MutantFlushReached(m) ==
    flushMode = "SYNC_FLUSH" /\ role = "ASYNC_MASTER" => Position(m) <= flushed["master"]
=============================================================================
