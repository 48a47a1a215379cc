----------------------- MODULE FlushRecoveredNotSynced -----------------------
(* Recovery counts records from the page cache as flushed without an fsync. A consumer sees them, and the
   next system crash removes them. *)
EXTENDS MCFlush

MutantRecoverLog ==
    /\ phase = "down"
    /\ phase' = "log_recovered"
    /\ log' = RecoveredLog
    /\ flushed' = Min(flushed, Len(log'))
    /\ dispatched' = Min(DispatchFrom, Len(log'))
    /\ UNCHANGED <<mode, queueFiles, checkpoint, abort, persisted, nextOffset, committed, clients, history>>
==============================================================================
