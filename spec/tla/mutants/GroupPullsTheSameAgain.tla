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
           /\ due' = IF assigned[q] = c /\ due[q][i] >= 0 THEN [due EXCEPT ![q][i] = @ - 1] ELSE due
    /\ UNCHANGED <<broker, assigned>>
==============================================================================
