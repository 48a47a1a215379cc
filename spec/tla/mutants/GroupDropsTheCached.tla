------------------------- MODULE GroupDropsTheCached -------------------------
(* When queues move, a member drops its cached messages, but its offset is already past them (issue
   2732). *)
EXTENDS MCGroup

MutantStart(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ \E cached \in 0..1 :
        /\ committed[q] + cached <= Len(queue[q])
        /\ position' = [position EXCEPT ![c][q] = committed[q] + cached]
    /\ due' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>
==============================================================================
