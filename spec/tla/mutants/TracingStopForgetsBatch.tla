------------------- MODULE TracingStopForgetsBatch -------------------
(* At the end of a stop only the traces that wait are counted, and not the batch that is being sent. *)
EXTENDS MCTracing

MutantStopped ==
    /\ phase = "stopping"
    /\ phase' = "stopped"
    /\ dropped' = dropped + Cardinality(waiting)
    /\ waiting' = {}
    /\ batch' = {}
    /\ UNCHANGED <<outcome, result, topic, sent>>
======================================================================
