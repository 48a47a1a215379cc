------------------------- MODULE GroupStartsAtTheEnd -------------------------
(* A member treats an error of its offset query as "no offset", and starts at the end (issue 2708). *)
EXTENDS MCGroup

MutantStartOffset(q) ==
    Len(queue[q])
==============================================================================
