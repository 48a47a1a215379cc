------------------------ MODULE TimersDelayUnbounded ------------------------
(* The broker accepts any delay. *)
EXTENDS MCTimers

MutantAccepts(delay) == TRUE
==============================================================================
