-------------------------- MODULE GroupStartsAtZero --------------------------
(* An offset that is out of range sends the group to the queue's beginning (issue 2181): all of it is delivered again,
   and nobody asked for it. *)
EXTENDS MCGroup

MutantStartOffset(q) ==
    0
==============================================================================
