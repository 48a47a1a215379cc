---------------------- MODULE GuaranteeDamageNotRepaired ----------------------
(* A damaged record stays damaged, although the other node has it. *)
EXTENDS GuaranteeDamage

MutantRepairable(n, i) == FALSE
===============================================================================
