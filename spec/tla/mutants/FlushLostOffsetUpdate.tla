------------------------ MODULE FlushLostOffsetUpdate ------------------------
(* The next offset is read and increased under too small a lock (as in issue 7511): an increment is lost. *)
EXTENDS MCFlush

MutantAppendRecord(m, q) ==
    /\ phase = "running"
    /\ answer[m] = "unsent"
    /\ log' = log \o <<NewRecord(m, q)>>
    /\ appended' = log'
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<mode, phase, flushed, queueFiles, checkpoint, abort, persisted, memory, seen, crashes>>
==============================================================================
