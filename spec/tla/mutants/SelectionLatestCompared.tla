---------------------- MODULE SelectionLatestCompared ------------------------
(* The member compares the tags with its present expression, not with that of the pull. *)
EXTENDS MCSelection

MutantTaken ==
    {i \in answer.found : queue[i] \in wanted}
==============================================================================
