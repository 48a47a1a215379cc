----------------------- MODULE DamageEntryNotRepaired -----------------------
(* A read passes over a damaged entry, like an expired one. *)
EXTENDS MCDamage

MutantConsume(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ read' = IF Good(o) /\ queue[o] = o THEN [offset |-> o, message |-> log[o].message, is |-> "good"]
               ELSE [offset |-> o, message |-> Nothing, is |-> "nothing"]
    /\ queue' = queue
    /\ reported' = IF Good(o) THEN reported ELSE reported \cup {o}
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
=============================================================================
