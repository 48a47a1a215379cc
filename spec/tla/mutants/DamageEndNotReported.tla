------------------------- MODULE DamageEndNotReported ------------------------
(* A start takes a damaged record at the end of the log for a torn write. It reports only whole records that it cuts. *)
EXTENDS MCDamage

MutantCutPlaces == IF \E o \in End + 1..Len(log) : Good(o) THEN End + 1..Len(log) ELSE {}
==============================================================================
