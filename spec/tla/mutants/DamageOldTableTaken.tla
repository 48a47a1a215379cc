------------------------- MODULE DamageOldTableTaken -------------------------
(* A start takes the table of topics, if it is sound, although its backup is newer. *)
EXTENDS MCDamage

MutantHasTopic == table[IF table["main"] = "bad" THEN "backup" ELSE "main"] = "new"
==============================================================================
