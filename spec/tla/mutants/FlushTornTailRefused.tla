------------------------ MODULE FlushTornTailRefused ------------------------
(* A store whose last record is torn refuses to start (as in issues 6904 and 5651). *)
EXTENDS MCFlush

MutantRecoverLog ==
    /\ phase = "down"
    /\ \A i \in 1..Len(log) : log[i] # Torn
    /\ phase' = "log_recovered"
    /\ log' = RecoveredLog
    /\ flushed' = Len(log')
    /\ dispatched' = Min(DispatchFrom, Len(log'))
    /\ UNCHANGED <<mode, queueFiles, checkpoint, abort, persisted, nextOffset, committed, clients, history>>
==============================================================================
