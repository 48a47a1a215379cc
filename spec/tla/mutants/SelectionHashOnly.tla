------------------------- MODULE SelectionHashOnly ---------------------------
(* The member does not compare the tags themselves. *)
EXTENDS MCSelection

MutantTaken ==
    answer.found
==============================================================================
