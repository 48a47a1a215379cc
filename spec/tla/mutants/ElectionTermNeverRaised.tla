----------------------- MODULE ElectionTermNeverRaised -----------------------
(* After a split vote the candidates ask again in the same term, for ever: the wake-up for the next term is lost. *)
EXTENDS MCElection

MutantAskAgain(n, result) ==
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ UNCHANGED <<role, leader, log, winners, network, known>>
==============================================================================
