------------------------- MODULE RoutingStickyClient -------------------------
(* A client stays with a name server that does not answer (clientCloseSocketIfTimeout off). *)
EXTENDS MCRouting

MutantPollFails(c, next) ==
    /\ pollAge[c] = PollEvery
    /\ ~Reaches(c, server[c])
    /\ next = server[c]
    /\ pollAge' = [pollAge EXCEPT ![c] = 0]
    /\ answered' = answered \ {c}
    /\ UNCHANGED <<processes, links, servers, created, heartbeatAge, server, route, publish, silence, faults>>
==============================================================================
