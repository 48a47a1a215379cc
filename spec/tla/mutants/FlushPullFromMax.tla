-------------------------- MODULE FlushPullFromMax --------------------------
(* A consumer whose offset query fails starts at the end (issue 2708). *)
EXTENDS MCFlush

MutantDeliver(q) ==
    /\ phase = "running"
    /\ Len(seen[q]) < Len(queue[q])
    /\ seen' = [seen EXCEPT ![q] = Append(@, log[LastQueued(q)].message)]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, answer, history>>
==============================================================================
