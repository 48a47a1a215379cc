------------------------- MODULE RoutingRouteMerged --------------------------
(* A client adds the received route to its old one. *)
EXTENDS MCRouting

MutantRouteFrom(table, old) ==
    IF RouteOf(table, "topic") = NoRoute THEN old
    ELSE [RouteOf(table, "topic") EXCEPT !.brokers = @ \cup old.brokers]
==============================================================================
