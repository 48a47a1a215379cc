-------------------- MODULE TracingRefusedTraced ---------------------
(* A send that the broker refused is traced. *)
EXTENDS MCTracing

MutantEnd(o, e) ==
    /\ outcome[o] = "running"
    /\ e \in EndsOf(o)
    /\ result' = [result EXCEPT ![o] = e]
    /\ outcome' = [outcome EXCEPT ![o] = e]
    /\ Put(Trace(o, IF e = "refused" THEN "bad" ELSE e))
    /\ UNCHANGED <<phase, batch, topic, sent>>
======================================================================
