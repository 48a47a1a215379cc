-------------------- MODULE ElectionTimedOutEntryRemoved --------------------
(* A leader removes an entry whose client waited too long. *)
EXTENDS MCElection

MutantFail(m) ==
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "unknown"]
    /\ log' = [n \in Nodes |-> IF role[n] = "LEADER" THEN SelectSeq(log[n], LAMBDA entry : entry.message # m) ELSE log[n]]
    /\ durable' = [n \in Nodes |-> Min(durable[n], Len(log'[n]))]
    /\ UNCHANGED <<file, nodeState, commit, network, calm, history>>
==============================================================================
