---------------------------- MODULE DamageEndsLog ----------------------------
(* A start ends the log at a damaged record, as if a crash had torn it. *)
EXTENDS MCDamage

MutantEnds(end) ==
    /\ \A o \in 1..end : Good(o)
    /\ end = Len(log) \/ ~Good(end + 1)

MutantCutPlaces == {}
==============================================================================
