------------------------- MODULE GroupStartsAtTheEnd -------------------------
(* A member takes an error while it asks for its offset for "none", and starts at the end (issue 2708). *)
EXTENDS MCGroup

MutantStartOffset(q) ==
    Len(queue[q])
==============================================================================
