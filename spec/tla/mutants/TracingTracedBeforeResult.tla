------------------ MODULE TracingTracedBeforeResult ------------------
(* A send is traced as a success before the broker has answered. *)
EXTENDS MCTracing

MutantBegin(o) ==
    /\ phase = "running"
    /\ outcome[o] = "new"
    /\ outcome' = [outcome EXCEPT ![o] = "running"]
    /\ Put(Trace(o, IF o \in Calls THEN "began" ELSE "good"))
    /\ UNCHANGED <<phase, result, batch, topic, sent>>
======================================================================
