----------------------- MODULE GroupPullsTheSameAgain ------------------------
(* The next pull uses the requested offset again instead of the next offset that the broker returned: the
   same messages again. *)
EXTENDS MCGroup

MutantDeliver(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] < Len(queue[q])
    /\ LET i == position[c][q] + 1
       IN  /\ seen' = [seen EXCEPT ![q] = WithDelivery(@, i, queue[q][i])]
           /\ position' \in {position, [position EXCEPT ![c][q] = i]}
           /\ owed' = IF assigned[q] = c /\ owed[q][i] >= 0 THEN [owed EXCEPT ![q][i] = @ - 1] ELSE owed
    /\ UNCHANGED <<broker, assigned>>
==============================================================================
