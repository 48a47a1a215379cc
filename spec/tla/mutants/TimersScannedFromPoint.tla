----------------------- MODULE TimersScannedFromPoint -----------------------
(* A restart looks for final messages only after the last point. *)
EXTENDS MCTimers

MutantScanFrom == Len(log) + 1
==============================================================================
