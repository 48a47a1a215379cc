------------------------- MODULE GroupDropsTheCached -------------------------
(* When queues move, the messages that a member has cached are dropped, but its offset is behind them (issue 2732). *)
EXTENDS MCGroup

MutantStart(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ \E cached \in 0..1 :
        /\ committed[q] + cached <= Len(queue[q])
        /\ position' = [position EXCEPT ![c][q] = committed[q] + cached]
    /\ owed' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>
==============================================================================
