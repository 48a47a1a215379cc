------------------------ MODULE GroupNeverBeginsAgain ------------------------
(* An offset that was stored before a crash is not used again: no member reads the queue any more (as in
   issue 1869). *)
EXTENDS MCGroup

MutantStart(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ committed[q] = 0
    /\ position' = [position EXCEPT ![c][q] = StartOffset(q)]
    /\ due' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>
==============================================================================
