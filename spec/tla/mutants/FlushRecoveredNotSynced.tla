----------------------- MODULE FlushRecoveredNotSynced -----------------------
(* What recovery found in the page cache counts as flushed without an fsync: a consumer sees it, and the next
   crash of the system takes it back. *)
EXTENDS MCFlush

MutantRecoverLog ==
    /\ phase = "down"
    /\ phase' = "log_recovered"
    /\ log' = RecoveredLog
    /\ flushed' = Min(flushed, Len(log'))
    /\ dispatched' = Min(DispatchFrom, Len(log'))
    /\ UNCHANGED <<mode, queueFiles, checkpoint, abort, persisted, nextOffset, committed, clients, history>>
==============================================================================
