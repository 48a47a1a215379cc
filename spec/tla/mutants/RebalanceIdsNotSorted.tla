----------------------- MODULE RebalanceIdsNotSorted -------------------------
(* A member takes its place in the order in which the members registered, which is another one at each broker.
   *)
EXTENDS MCRebalance

MutantPosition(b, m) ==
    (CHOOSE i \in 1..Len(known[b]) : known[b][i] = m) - 1
==============================================================================
