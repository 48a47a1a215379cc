-------------------- MODULE ReplicationStuckBehindAnother --------------------
(* Requests are served one by one: a request that is stuck delays those behind it, although they were
   acknowledged. *)
EXTENDS MCReplication

MutantSlaveTimeout(m) ==
    /\ phase["master"] = "up"
    /\ answer[m] = "waiting" /\ request[m].replica = "waiting"
    /\ role = "SYNC_MASTER"
    /\ request' = [request EXCEPT ![m].replica = "FLUSH_SLAVE_TIMEOUT"]
    /\ UNCHANGED <<modes, phase, files, connection, sent, acked, slaveMemory, clients, history>>
==============================================================================
