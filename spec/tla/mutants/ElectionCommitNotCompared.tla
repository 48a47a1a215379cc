---------------------- MODULE ElectionCommitNotCompared ----------------------
(* A follower accepts any commit index, whatever its own log contains (as with DLedger's COMMIT, which
   checks neither). *)
EXTENDS MCElection

MutantHandleCommit(m) ==
    /\ m.kind = "COMMIT" /\ Up(m.target)
    /\ m.index > commit[m.target]
    /\ commit' = [commit EXCEPT ![m.target] = m.index]
    /\ UNCHANGED <<file, ledger, nodeState, network, answer, calm, history>>
==============================================================================
