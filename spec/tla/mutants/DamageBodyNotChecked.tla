------------------------ MODULE DamageBodyNotChecked ------------------------
(* A read does not compare the body with its checksum. *)
EXTENDS MCDamage

MutantConsume(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ read' = [offset |-> o, message |-> log[o].message, is |-> log[o].is]
    /\ queue' = [queue EXCEPT ![o] = o]
    /\ reported' = reported
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
=============================================================================
