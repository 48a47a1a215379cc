------------------------ MODULE DamageMissingAccepted ------------------------
(* A start does not notice that files of the durable log are missing. *)
EXTENDS MCDamage

MutantProblem == IF \A c \in Copies : table[c] = "bad" THEN "table" ELSE "none"

MutantCutPlaces == {}
==============================================================================
