---------------------- MODULE ElectionVotesOfAMinority ----------------------
(* A leader needs half of the votes, not more than half. *)
EXTENDS MCElection

MutantQuorum ==
    Cardinality(Nodes) \div 2
==============================================================================
