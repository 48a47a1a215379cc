---------------------- MODULE ElectionNeverPushedAgain ----------------------
(* A push that was lost is not repeated while nothing new is appended (DLedger 61). *)
EXTENDS MCElection

MutantRepeat(n) ==
    /\ \/ InRound(n) /\ Send(Votes(n))
       \/ role[n] = "LEADER" /\ Send(HeartBeats(n))
    /\ network' # network
    /\ UNCHANGED <<file, ledger, nodeState, commit, answer, calm, history>>
==============================================================================
