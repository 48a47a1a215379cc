--------------------- MODULE SelectionCollisionDropped -----------------------
(* The broker drops a message whose hash code is that of two tags. *)
EXTENDS MCSelection

MutantPasses(t, e) ==
    e = Tags \/ t \in e \ Colliding
==============================================================================
