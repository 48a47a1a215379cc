---------------------------- MODULE DamageShipped -----------------------------
(* What released brokers do with damaged files, as docs/reference/protocol/storing.md says. A configuration selects one
   deviation. *)
EXTENDS MCDamage

Unchanged == UNCHANGED <<phase, log, queue, checkpoint, table, topic, peer, reported, named, history, struck>>

\* A read delivers the bytes of the entry as they are. It stops at an entry or record that was never written.
ServedAsItIs(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ read' = IF queue[o] = o /\ log[o].is # "blank"
               THEN [offset |-> o, message |-> log[o].message, is |-> log[o].is]
               ELSE [offset |-> o, message |-> Nothing, is |-> "nothing"]
    /\ Unchanged

\* A read delivers the record at which the entry points.
ServedByEntry(o) ==
    /\ Running
    /\ o <= Len(log)
    /\ Good(queue[o])
    /\ read' = [offset |-> o, message |-> log[queue[o]].message, is |-> "good"]
    /\ Unchanged

\* A start keeps the records before the first damaged one. The error log does not name what follows.
ByPosition(end) ==
    /\ \A o \in 1..end : Good(o)
    /\ end = Len(log) \/ ~Good(end + 1)

NoPlaces == {}

\* A start reads the backup only if the file is missing, empty or no JSON text.
FileBeforeBackup == table[IF table["main"] = "bad" THEN "backup" ELSE "main"] = "new"
===============================================================================
