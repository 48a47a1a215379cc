------------------------- MODULE DamagePeerNotAsked -------------------------
(* A damaged record is reported, and its copy on the slave is not used. *)
EXTENDS MCDamage

MutantRepair(o) == FALSE /\ UNCHANGED vars
=============================================================================
