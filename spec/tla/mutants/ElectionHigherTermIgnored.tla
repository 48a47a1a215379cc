---------------------- MODULE ElectionHigherTermIgnored ----------------------
(* A leader ignores the answer of a node that is in a later term. That node never joins it (DLedger 85,
   247, 325, 331). *)
EXTENDS MCElection

MutantHandleHeartBeat(m) ==
    LET code == HeartBeatCode(m)
    IN  /\ m.kind = "HEART_BEAT" /\ Up(m.target) /\ Arrives(m)
        /\ CASE code = "SUCCESS" -> leader[m.target] = None /\ BecomeFollower(m.target, m.source)
             [] code = "TERM_NOT_READY" -> BecomeCandidate(m.target, m.term) /\ <<role, known>>' # <<role, known>>
             [] OTHER -> FALSE
        /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>
==============================================================================
