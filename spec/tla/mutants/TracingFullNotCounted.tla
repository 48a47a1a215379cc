-------------------- MODULE TracingFullNotCounted --------------------
(* A trace for which there is no room is dropped without a count. *)
EXTENDS MCTracing

MutantPut(t) ==
    /\ waiting' = IF HasRoom THEN waiting \cup {t} ELSE waiting
    /\ UNCHANGED dropped
======================================================================
