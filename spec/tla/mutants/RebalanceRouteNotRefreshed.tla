--------------------- MODULE RebalanceRouteNotRefreshed ----------------------
(* A member keeps the route that it received at its start. *)
EXTENDS MCRebalance

MutantPoll(m) ==
    FALSE
==============================================================================
