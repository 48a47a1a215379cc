-------------------- MODULE RoutingUnchangedNotRefreshed ---------------------
(* A registration without new data does not count as a sign of life (forceRegister off). *)
EXTENDS MCRouting

MutantRegistered(table, b, topics) ==
    LET version == Cardinality(topics)
        Takes(t) == t \in topics /\ TakesTopicsFrom(table, b) /\ table.live[b].version # version
    IN  IF table.live[b].version = version THEN table
        ELSE [queues |-> [t \in Topics |->
                            IF Takes(t) THEN [table.queues[t] EXCEPT ![Name(b)] = "write"] ELSE table.queues[t]],
              members |-> [table.members EXCEPT ![Name(b)] = @ \cup {Id(b)}],
              cluster |-> table.cluster \cup {Name(b)},
              live |-> [table.live EXCEPT ![b] = [age |-> 0, version |-> version]]]
==============================================================================
