------------------------ MODULE TimersRecallForgotten ------------------------
(* A restart does not look for recalls. *)
EXTENDS MCTimers

MutantEvidence(t) == \E i \in begin + 1..Len(log) : i >= LastPoint.scan /\ Is(i, "final", t)
==============================================================================
