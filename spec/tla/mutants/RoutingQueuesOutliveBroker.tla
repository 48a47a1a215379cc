--------------------- MODULE RoutingQueuesOutliveBroker ----------------------
(* A broker that loses its last address is removed from the broker table, but its queues stay. *)
EXTENDS MCRouting

MutantForgotten(table, gone) ==
    LET members == [name \in Names |-> {id \in table.members[name] : <<name, id>> \notin gone}]
    IN  [table EXCEPT
            !.members = members,
            !.cluster = {name \in @ : members[name] # {}},
            !.live = [b \in Brokers |-> IF b \in gone THEN NoRecord ELSE @[b]]]
==============================================================================
