-------------------- MODULE ElectionAcknowledgedTooEarly --------------------
(* The client is answered as soon as the leader has its message. *)
EXTENDS MCElection

MutantAcknowledge(n, m) ==
    /\ role[n] = "LEADER"
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "SUCCESS"]
    /\ UNCHANGED <<file, ledger, nodeState, commit, network, calm, history>>
==============================================================================
