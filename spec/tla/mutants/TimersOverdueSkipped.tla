------------------------ MODULE TimersOverdueSkipped ------------------------
(* A message is delivered only at its time: one that was due during an outage is skipped. *)
EXTENDS MCTimers

MutantIsDue(i) == log[i].due = now
==============================================================================
