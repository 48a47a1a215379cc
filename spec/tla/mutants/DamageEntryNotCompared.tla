----------------------- MODULE DamageEntryNotCompared -----------------------
(* A read delivers the record at which the queue entry points, whatever its queue offset is. *)
EXTENDS MCDamage

MutantConsume(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ Good(queue[o])
    /\ read' = [offset |-> o, message |-> log[queue[o]].message, is |-> log[queue[o]].is]
    /\ queue' = queue
    /\ reported' = reported
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
=============================================================================
