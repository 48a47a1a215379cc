----------------------- MODULE SelectionFirstTagOnly -------------------------
(* The broker uses only one tag of an expression. *)
EXTENDS MCSelection

MutantPasses(t, e) ==
    e = Tags \/ SameHash(t, CHOOSE u \in e : TRUE)
==============================================================================
