------------------------ MODULE RoutingNothingExpires ------------------------
(* Only a closed connection removes a dead broker; a silent broker stays. *)
EXTENDS MCRouting

MutantExpired(n) ==
    {}
==============================================================================
