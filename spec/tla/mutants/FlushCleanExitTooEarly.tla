----------------------- MODULE FlushCleanExitTooEarly -----------------------
(* The abort file is deleted although the queues are not durable yet (ROCKETMQ-320). *)
EXTENDS MCFlush

MutantShutdown ==
    /\ phase = "running"
    /\ \A m \in Messages : answer[m] # "waiting"
    /\ flushed = Len(log) /\ dispatched = Len(log)
    /\ persisted = committed
    /\ phase' = "down" /\ abort' = FALSE
    /\ dispatched' = 0 /\ nextOffset' = Zero
    /\ UNCHANGED <<mode, logFiles, queueFiles, checkpoint, persisted, committed, clients, history>>
==============================================================================
