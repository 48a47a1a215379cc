----------------------- MODULE GroupPullsBeyondTheEnd ------------------------
(* A pull at the end of the queue returns the bytes of the file after it. *)
EXTENDS MCGroup

MutantDeliver(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] <= Len(queue[q]) /\ position[c][q] < Longest
    /\ LET i == position[c][q] + 1
       IN  /\ seen' = [seen EXCEPT ![q] = WithDelivery(@, i, IF i > Len(queue[q]) THEN "torn" ELSE queue[q][i])]
           /\ position' = [position EXCEPT ![c][q] = i]
    /\ UNCHANGED <<broker, assigned, due>>
==============================================================================
