----------------------- MODULE RoutingExpiredTooEarly ------------------------
(* A broker expires when its silence reaches the limit, not when it exceeds it. *)
EXTENDS MCRouting

MutantExpired(n) ==
    {b \in Live(tables[n]) : tables[n].live[b].age >= Expiry}
==============================================================================
