------------------------ MODULE RoutingSlaveWritable -------------------------
(* A producer considers every broker of a name writable. *)
EXTENDS MCRouting

MutantPublishable(r) ==
    {name \in Names : r.queues[name] = "write" /\ \E id \in {0, 1} : <<name, id>> \in r.brokers}
==============================================================================
