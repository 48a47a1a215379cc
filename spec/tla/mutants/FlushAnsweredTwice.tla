-------------------------- MODULE FlushAnsweredTwice --------------------------
(* The watcher of late flushes and the flush itself both answer: FLUSH_DISK_TIMEOUT first, SEND_OK after it. *)
EXTENDS MCFlush

MutantAnswerOk(m) ==
    /\ phase = "running"
    /\ answer[m] \in {"waiting", "FLUSH_DISK_TIMEOUT"}
    /\ MayAnswer(m)
    /\ answer' = [answer EXCEPT ![m] = "SEND_OK"]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>
==============================================================================
