------------------------ MODULE TimersDeliveredEarly ------------------------
(* A message is delivered one tick before it is due. *)
EXTENDS MCTimers

MutantIsDue(i) == log[i].due <= now + 1
==============================================================================
