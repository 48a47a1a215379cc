---------------------- MODULE RoutingRegistersOnChange -----------------------
(* A broker registers when it has something new to say; a name server that has forgotten is not told. *)
EXTENDS MCRouting

MutantRegister(b) ==
    /\ b \in running
    /\ heartbeatAge[b] = HeartbeatEvery
    /\ heartbeatAge' = [heartbeatAge EXCEPT ![b] = 0]
    /\ LET version == Cardinality(TopicsOf(b, created))
           known == {n \in NameServers : silence[n][b] < Long /\ tables[n].live[b].version \in {0, version}}
       IN  RegisterAt(Reached(b) \ known, b, TopicsOf(b, created))
    /\ UNCHANGED <<processes, links, scanAge, created, clients, faults>>
==============================================================================
