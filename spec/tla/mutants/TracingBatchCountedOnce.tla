------------------- MODULE TracingBatchCountedOnce -------------------
(* A batch that fails is counted as one trace. *)
EXTENDS MCTracing

MutantSettle(succeeds) ==
    /\ batch # {}
    /\ succeeds => batch \subseteq topic
    /\ sent' = IF succeeds THEN sent \cup batch ELSE sent
    /\ dropped' = IF succeeds THEN dropped ELSE dropped + 1
    /\ batch' = {}
    /\ UNCHANGED <<phase, outcome, result, waiting, topic>>
======================================================================
