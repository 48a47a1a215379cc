---------------------- MODULE RoutingSlaveExtendsMaster ----------------------
(* A registration refreshes the live records of all brokers of its name. *)
EXTENDS MCRouting

MutantRegisterAt(reached, b, topics) ==
    LET Refreshed(table) ==
            [table EXCEPT !.live =
                [any \in Brokers |->
                    IF Name(any) = Name(b) /\ @[any] # NoRecord THEN [@[any] EXCEPT !.age = 0] ELSE @[any]]]
    IN  /\ tables' = [n \in NameServers |->
                        IF n \in reached THEN Refreshed(Registered(tables[n], b, topics)) ELSE tables[n]]
        /\ connected' = [n \in NameServers |-> IF n \in reached THEN connected[n] \cup {b} ELSE connected[n]]
        /\ silence' = [n \in NameServers |-> IF n \in reached THEN [silence[n] EXCEPT ![b] = 0] ELSE silence[n]]
==============================================================================
