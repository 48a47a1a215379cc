--------------------------- MODULE FlushLateCommit ---------------------------
(* An offset commit that was overtaken is stored without a comparison with the stored offset. *)
EXTENDS MCFlush

MutantCommitOffset(q) ==
    /\ phase = "running"
    /\ \E offset \in 0..Len(seen[q]) : committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, dispatched, nextOffset, clients, history>>
==============================================================================
