------------------------ MODULE RoutingOneServerTold -------------------------
(* A broker registers at the first name server that answers, as if they told one another. *)
EXTENDS MCRouting

MutantReached(b) ==
    LET reached == {n \in serving : <<n, b>> \notin brokerCut}
    IN  IF reached = {} THEN {} ELSE {CHOOSE n \in reached : TRUE}
==============================================================================
