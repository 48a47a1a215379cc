--------------------------- MODULE RoutingShipped ---------------------------
(* What releases do otherwise than Routing; docs/as-shipped.md tells the stories. *)
EXTENDS MCRouting

VARIABLE pending \* 5.x: who is yet to be forgotten, pairs of a name server and a broker whose connection has closed

shippedVars == <<vars, pending>>

ShippedSpec == Init /\ pending = {} /\ [][MCNext /\ pending' = pending]_shippedVars

ShippedFairSpec == ShippedSpec /\ Fairness

\* 4.9 and 5.x: a client that is told that its topic is unknown keeps the route it has.
ShippedRouteFrom(table, old) ==
    IF RouteOf(table, "topic") # NoRoute THEN RouteOf(table, "topic")
    ELSE IF old.source = "topic" THEN old
    ELSE RouteOf(table, "TBW102")

\* 4.9: what a slave says of queues is never taken.
ShippedTakesTopicsFrom(table, b) == Id(b) = 0

\* 5.x: a closed connection asks for its broker to be forgotten, later and by the broker's address.
ShippedDisconnect(lost) ==
    /\ pending' = pending \cup lost
    /\ tables' = tables
    /\ connected' = [n \in NameServers |-> {b \in connected[n] : <<n, b>> \notin lost}]

Drain(n, b) ==
    /\ n \in serving
    /\ <<n, b>> \in pending
    /\ pending' = pending \ {<<n, b>>}
    /\ Forget({<<n, b>>})
    /\ UNCHANGED <<processes, links, connected, scanAge, created, heartbeatAge, clients, silence, faults>>

Closing == \E b \in Brokers : MCBrokerDies(b) \/ \E n \in NameServers : MCCloseChannel(n, b)

QueueNext ==
    \/ (Work \/ Repair) /\ pending' = pending
    \/ Closing
    \/ \E n \in NameServers, b \in Brokers : Drain(n, b)

ShippedQueueSpec == Init /\ pending = {} /\ [][QueueNext]_shippedVars
=============================================================================
