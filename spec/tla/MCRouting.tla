------------------------------ MODULE MCRouting ------------------------------
(* Routing, bounded: the number of faults is limited, and then faults end. The sets and periods bound
   everything else. *)
EXTENDS Routing

CONSTANT MaxFaults

MayFail == faults < MaxFaults

MCBrokerDies(b) == MayFail /\ BrokerDies(b)
MCMachineDies(b) == MayFail /\ MachineDies(b)
MCCloseChannel(n, b) == MayFail /\ CloseChannel(n, b)
MCCutBroker(n, b) == MayFail /\ CutBroker(n, b)
MCCutClient(n, c) == MayFail /\ CutClient(n, c)
MCNameServerDies(n) == MayFail /\ NameServerDies(n)
MCWipeWrite(n, name) == MayFail /\ WipeWrite(n, name)

MCNext ==
    \/ Work \/ Repair
    \/ \E b \in Brokers : MCBrokerDies(b) \/ MCMachineDies(b)
    \/ \E n \in NameServers, b \in Brokers : MCCloseChannel(n, b) \/ MCCutBroker(n, b)
    \/ \E n \in NameServers, c \in Clients : MCCutClient(n, c)
    \/ \E n \in NameServers : MCNameServerDies(n)
    \/ \E n \in NameServers, name \in Names : MCWipeWrite(n, name)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it the liveness property fails. *)
WithoutTickFairness == MCSpec /\ RegisterFairness /\ ScanFairness /\ PollFairness
WithoutRegisterFairness == MCSpec /\ TickFairness /\ ScanFairness /\ PollFairness
WithoutScanFairness == MCSpec /\ TickFairness /\ RegisterFairness /\ PollFairness
WithoutPollFairness == MCSpec /\ TickFairness /\ RegisterFairness /\ ScanFairness

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
Known(n) == Live(tables[n])
Linked(n, b) == n \in serving /\ <<n, b>> \notin brokerCut
NoDeadBroker == running = Brokers
NoSilentDeath == \A n \in NameServers : \A b \in Known(n) : b \in running \/ ~Linked(n, b)
NoClosedChannel ==
    \A n \in NameServers, b \in running : Linked(n, b) /\ silence[n][b] = 0 => b \in connected[n]
NoEviction == \A n \in NameServers : connected[n] \subseteq Known(n)
NoExpired == \A n \in NameServers : Expired(n) = {}
NoCutBroker == brokerCut = {}
NoCutClient == clientCut = {}
NoHeartbeatLost ==
    \A n \in NameServers, b \in running :
        b \in Known(n) /\ heartbeatAge[b] < HeartbeatEvery => silence[n][b] <= heartbeatAge[b]
NoDeadNameServer == serving = NameServers
NoAmnesia == \A n \in serving : tables[n] = EmptyTables => \A b \in Brokers : silence[n][b] = Long
NoDifference == \A n, m \in serving : tables[n].members = tables[m].members
NoWipe == \A n \in NameServers, t \in Topics, name \in Names : tables[n].queues[t][name] # "read"
NoFailedPoll == \A c \in Clients : c \in answered \/ route[c] = NoRoute
NoDefaultRoute == \A c \in Clients : route[c].source # "default"
NoAutoCreation == created = Holders
NoMasterlessRoute == \A c \in Clients : \A b \in route[c].brokers : <<Name(b), 0>> \in route[c].brokers
NoStaleRoute == \A c \in answered : \A b \in route[c].brokers : b \in running
NoRouteLost == \A c \in answered : route[c] # NoRoute \/ faults = 0
=============================================================================
