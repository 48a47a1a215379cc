--------------------- MODULE TracingWithoutBound ---------------------
(* Traces wait without a bound. *)
EXTENDS MCTracing

MutantHasRoom == phase = "running"
======================================================================
