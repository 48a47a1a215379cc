---------------------- MODULE SelectionNothingFiltered -----------------------
(* Broker and member ignore the expression. *)
EXTENDS MCSelection

MutantPasses(t, e) ==
    TRUE

MutantSelects(e, t) ==
    TRUE
==============================================================================
