------------------------- MODULE GroupLateCommitWins -------------------------
(* The broker takes any offset from anybody (no owner check, no comparison): a late one of the previous owner wins. *)
EXTENDS MCGroup

MutantCommitOffset(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] # committed[q]
    /\ committed' = [committed EXCEPT ![q] = position[c][q]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>
==============================================================================
