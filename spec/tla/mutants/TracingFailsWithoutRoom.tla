------------------- MODULE TracingFailsWithoutRoom -------------------
(* A send or a call whose trace finds no room fails. *)
EXTENDS MCTracing

MutantSeen(e) == IF HasRoom THEN e ELSE "bad"
======================================================================
