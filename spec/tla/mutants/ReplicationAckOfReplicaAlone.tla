-------------------- MODULE ReplicationAckOfReplicaAlone --------------------
(* SYNC_FLUSH is forgotten where SYNC_MASTER is waited for. *)
EXTENDS MCReplication

MutantFlushReached(m) ==
    flushMode = "SYNC_FLUSH" /\ role = "ASYNC_MASTER" => Position(m) <= flushed["master"]
=============================================================================
