---------------------- MODULE RoutingRegistersOnChange -----------------------
(* A broker registers only when its data has changed. A name server that lost its tables receives nothing. *)
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
