--------------------------- MODULE RoutingShipped ---------------------------
(* Deviations of released versions from Routing. See docs/explanation/as-shipped.md for the details. *)
EXTENDS MCRouting

\* 4.9 and 5.x: a client keeps its route when the name server answers that the topic is unknown.
ShippedRouteFrom(table, old) ==
    IF RouteOf(table, "topic") # NoRoute THEN RouteOf(table, "topic")
    ELSE IF old.source = "topic" THEN old
    ELSE RouteOf(table, "TBW102")

\* 4.9: the queues in a slave's registration are always ignored.
ShippedTakesTopicsFrom(table, b) == Id(b) = 0
=============================================================================
