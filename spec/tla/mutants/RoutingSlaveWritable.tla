------------------------ MODULE RoutingSlaveWritable -------------------------
(* A producer takes any broker of a name for one that can be written to. *)
EXTENDS MCRouting

MutantPublishable(r) ==
    {name \in Names : r.queues[name] = "write" /\ \E id \in {0, 1} : <<name, id>> \in r.brokers}
==============================================================================
