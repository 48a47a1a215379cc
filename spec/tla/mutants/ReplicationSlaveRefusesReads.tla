-------------------- MODULE ReplicationSlaveRefusesReads --------------------
(* A slave refuses pulls by default (as 5.x without slaveReadEnable). *)
EXTENDS MCReplication

MutantReadLimit(n) ==
    IF n = "slave" THEN 0 ELSE IF flushMode = "SYNC_FLUSH" THEN flushed[n] ELSE Len(log[n])
=============================================================================
