---------------------- MODULE ReplicationReadNotDurable ----------------------
(* Under SYNC_FLUSH, consumers see records that are not durable yet (as before 5.3). *)
EXTENDS MCReplication

MutantReadLimit(n) ==
    Len(log[n])
==============================================================================
