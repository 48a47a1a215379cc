--------------------- MODULE TracingWaitsForRoom ---------------------
(* A send or a call waits until there is room for its trace. *)
EXTENDS MCTracing

MutantEnd(o, e) ==
    /\ outcome[o] = "running"
    /\ e \in EndsOf(o)
    /\ e # "refused" /\ phase = "running" => HasRoom
    /\ result' = [result EXCEPT ![o] = e]
    /\ outcome' = [outcome EXCEPT ![o] = e]
    /\ IF e = "refused" THEN PutNothing ELSE Put(Trace(o, e))
    /\ UNCHANGED <<phase, batch, topic, sent>>
======================================================================
