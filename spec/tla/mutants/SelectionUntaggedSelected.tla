--------------------- MODULE SelectionUntaggedSelected -----------------------
(* A message without a tag passes each expression. *)
EXTENDS MCSelection

MutantPasses(t, e) ==
    e = Tags \/ t = "" \/ \E u \in e : SameHash(t, u)

MutantSelects(e, t) ==
    t \in e \/ t = ""
==============================================================================
