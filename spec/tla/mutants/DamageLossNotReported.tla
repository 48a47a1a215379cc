------------------------ MODULE DamageLossNotReported ------------------------
(* A read leaves a damaged record out, without a report. *)
EXTENDS MCDamage

MutantConsume(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ read' = IF Good(o) THEN [offset |-> o, message |-> log[o].message, is |-> "good"]
               ELSE [offset |-> o, message |-> Nothing, is |-> "nothing"]
    /\ queue' = queue
    /\ reported' = reported
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
==============================================================================
