------------------------ MODULE RoutingOneServerOnly -------------------------
(* A broker registers only at the first name server that answers, as if name servers exchanged their
   tables. *)
EXTENDS MCRouting

MutantReached(b) ==
    LET reached == {n \in serving : <<n, b>> \notin brokerCut}
    IN  IF reached = {} THEN {} ELSE {CHOOSE n \in reached : TRUE}
==============================================================================
