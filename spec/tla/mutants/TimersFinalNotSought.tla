----------------------- MODULE TimersFinalNotSought -----------------------
(* A restart does not look for final messages after the last point. *)
EXTENDS MCTimers

MutantEvidence(t) == Has("recall", t, begin, Len(log))
==============================================================================
