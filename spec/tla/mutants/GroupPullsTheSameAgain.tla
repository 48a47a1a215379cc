----------------------- MODULE GroupPullsTheSameAgain ------------------------
(* A pull goes on from the offset that it asked for, not from the one that the broker told it: the same again. *)
EXTENDS MCGroup

MutantDeliver(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] < Len(queue[q])
    /\ LET i == position[c][q] + 1
       IN  /\ seen' = [seen EXCEPT ![q] = Handed(@, i, queue[q][i])]
           /\ position' \in {position, [position EXCEPT ![c][q] = i]}
           /\ owed' = IF assigned[q] = c /\ owed[q][i] >= 0 THEN [owed EXCEPT ![q][i] = @ - 1] ELSE owed
    /\ UNCHANGED <<broker, assigned>>
==============================================================================
