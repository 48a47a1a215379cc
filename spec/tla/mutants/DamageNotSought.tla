--------------------------- MODULE DamageNotSought ---------------------------
(* No read reports the damage that it finds, so nothing is repaired. *)
EXTENDS MCDamage

MutantConsume(o) ==
    /\ Running
    /\ Good(o)
    /\ read' = [offset |-> o, message |-> log[o].message, is |-> "good"]
    /\ queue' = [queue EXCEPT ![o] = o]
    /\ reported' = reported
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
==============================================================================
