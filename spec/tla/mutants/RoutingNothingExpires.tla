------------------------ MODULE RoutingNothingExpires ------------------------
(* Only a closed connection tells of a dead broker; who falls silent stays. *)
EXTENDS MCRouting

MutantExpired(n) ==
    {}
==============================================================================
