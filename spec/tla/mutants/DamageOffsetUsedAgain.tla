------------------------ MODULE DamageOffsetUsedAgain ------------------------
(* A start cuts the damaged records at the end of the log. It reports them, and their offsets are used again. *)
EXTENDS MCDamage

MutantEnds(end) ==
    /\ \A o \in 1..end : Good(o)
    /\ end = Len(log) \/ ~Good(end + 1)

MutantCutPlaces == End + 1..Len(log)
==============================================================================
