------------------------ MODULE RoutingShippedQueue ------------------------
(* 5.x: a closed connection does not remove its broker at once. It queues a request to remove the broker by
   its address. *)
EXTENDS MCRouting

VARIABLE pending \* pairs of a name server and a broker that it has not removed yet

queueVars == <<vars, pending>>

\* Replaces Disconnect.
ShippedDisconnect(lost) ==
    /\ pending' = pending \cup lost
    /\ tables' = tables
    /\ connected' = [n \in NameServers |-> {b \in connected[n] : <<n, b>> \notin lost}]

DrainQueue(n, b) ==
    /\ n \in serving
    /\ <<n, b>> \in pending
    /\ pending' = pending \ {<<n, b>>}
    /\ Forget({<<n, b>>})
    /\ UNCHANGED <<processes, links, connected, scanAge, created, heartbeatAge, clients, silence, faults>>

\* The remaining actions are unchanged.
QueueRegister(b) == Register(b) /\ pending' = pending
QueueBrokerStarts(b) == BrokerStarts(b) /\ pending' = pending
QueueScan(n) == Scan(n) /\ pending' = pending
QueuePoll(c) == Poll(c) /\ pending' = pending
QueueTick == Tick /\ pending' = pending

QueueNext ==
    \/ \E b \in Brokers : QueueRegister(b) \/ QueueBrokerStarts(b) \/ MCBrokerDies(b)
    \/ \E n \in NameServers, b \in Brokers : MCCloseChannel(n, b) \/ DrainQueue(n, b)
    \/ \E n \in NameServers : QueueScan(n)
    \/ \E c \in Clients : QueuePoll(c)
    \/ QueueTick

QueueSpec == Init /\ pending = {} /\ [][QueueNext]_queueVars
=============================================================================
