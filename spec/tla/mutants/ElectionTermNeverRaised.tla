----------------------- MODULE ElectionTermNeverRaised -----------------------
(* After a split vote the candidates repeat the same term forever: the wake-up for the next term is lost. *)
EXTENDS MCElection

MutantAskAgain(n, result) ==
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ UNCHANGED <<role, leader, log, winners, network, known>>
==============================================================================
