--------------------------- MODULE RebalanceShipped -----------------------------
(* Deviations of released consumers. A configuration selects one of them. *)
EXTENDS MCRebalance

\* Issue 1589: two processes have the same client id, so a broker lists the id once, and both take its place.
SameShare(b, m) == IF known[b] = <<>> THEN {} ELSE Average(0, 1, route[m])

\* The members of a group may have different strategies, which no broker compares.
OwnStrategy(b, m) ==
    IF ~Knows(b, m) THEN {}
    ELSE IF \A n \in Members : m <= n THEN Average(Position(b, m), Len(known[b]), route[m])
    ELSE Circle(Position(b, m), Len(known[b]), route[m])
=================================================================================
