------------------- MODULE TracingEndsWithFailure --------------------
(* After a batch has failed, no other batch is sent. *)
EXTENDS MCTracing

MutantTake ==
    /\ batch = {} /\ waiting # {} /\ dropped = 0
    /\ batch' = waiting
    /\ waiting' = {}
    /\ UNCHANGED <<phase, outcome, result, topic, sent, dropped>>
======================================================================
