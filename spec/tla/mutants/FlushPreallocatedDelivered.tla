--------------------- MODULE FlushPreallocatedDelivered ---------------------
(* A pull at the end of the queue reads the preallocated bytes of the file. *)
EXTENDS MCFlush

MutantDeliver(q) ==
    /\ phase = "running"
    /\ Len(seen[q]) < 2
    /\ seen' = [seen EXCEPT ![q] =
                    Append(@, IF Len(@) < Len(queue[q]) THEN log[queue[q][Len(@) + 1]].message ELSE "torn")]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, answer, history>>
==============================================================================
