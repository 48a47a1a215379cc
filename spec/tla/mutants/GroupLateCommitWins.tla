------------------------- MODULE GroupLateCommitWins -------------------------
(* The broker accepts any offset from any member (no owner check, no comparison): a late commit of the
   previous owner wins. *)
EXTENDS MCGroup

MutantCommitOffset(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] # committed[q]
    /\ committed' = [committed EXCEPT ![q] = position[c][q]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>
==============================================================================
