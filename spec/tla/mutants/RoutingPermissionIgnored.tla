---------------------- MODULE RoutingPermissionIgnored -----------------------
(* A producer sends to queues whose write permission was taken away. *)
EXTENDS MCRouting

MutantPublishable(r) ==
    {name \in Names : r.queues[name] # "none" /\ <<name, 0>> \in r.brokers}
==============================================================================
