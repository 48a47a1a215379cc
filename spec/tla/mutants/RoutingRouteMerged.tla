------------------------- MODULE RoutingRouteMerged --------------------------
(* A client adds what it is told to the route it has. *)
EXTENDS MCRouting

MutantRouteFrom(table, old) ==
    IF RouteOf(table, "topic") = NoRoute THEN old
    ELSE [RouteOf(table, "topic") EXCEPT !.brokers = @ \cup old.brokers]
==============================================================================
