--------------------------- MODULE RoutingShipped ---------------------------
(* What releases do otherwise than Routing; docs/explanation/as-shipped.md tells the stories. *)
EXTENDS MCRouting

\* 4.9 and 5.x: a client that is told that its topic is unknown keeps the route it has.
ShippedRouteFrom(table, old) ==
    IF RouteOf(table, "topic") # NoRoute THEN RouteOf(table, "topic")
    ELSE IF old.source = "topic" THEN old
    ELSE RouteOf(table, "TBW102")

\* 4.9: what a slave says of queues is never taken.
ShippedTakesTopicsFrom(table, b) == Id(b) = 0
=============================================================================
