------------------------------ MODULE Routing ------------------------------
(***************************************************************************)
(* How clients discover brokers. Brokers register periodically at every    *)
(* name server. Name servers remove brokers that fall silent. Clients      *)
(* request the route of their topic from one name server. Processes and    *)
(* machines may crash, connections may close, links may fall silent, and   *)
(* name servers start with empty tables.                                   *)
(*                                                                         *)
(* The choice of a queue within a route is a separate module, QueueChoice. *)
(* It depends on nothing here except the route, and the product of the two *)
(* modules would make both hard to check.                                  *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Time: a tick is ten seconds; a request and its answer, which take    *)
(*    seconds at most, are one step; no period is ever exceeded.           *)
(*  - Clocks: ages are counted, all at the same speed; no clock is read.   *)
(*  - Messages: a request arrives, or its link is cut and it does not; a   *)
(*    request that arrives and loses its answer is repeated in the next    *)
(*    period.                                                              *)
(*  - Registration: a broker registers at all name servers in one step; it *)
(*    does not reach those whose link is cut.                              *)
(*  - Addresses: a broker never changes its name, id or address.           *)
(*  - Queues: one entry represents all queues of a topic at a broker name. *)
(*  - Topics: one besides the default topic, which every broker has; a     *)
(*    slave has its master's topics; the data version is their number.     *)
(*  - Clusters: there is one; filter servers exist as long as the live     *)
(*    record of their broker.                                              *)
(*  - Orderly stops: unregistering changes the tables in the same way as   *)
(*    the close of the connection.                                         *)
(*  - Links between clients and brokers are up.                            *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    NameServers,    \* strings
    Clients,        \* producers of the topic, strings
    Masters,        \* names of brokers that have a master, strings
    Slaves,         \* names of brokers that have a slave
    Holders,        \* names whose brokers have the topic from the start
    HeartbeatEvery, \* ticks between two registrations of a broker: 3
    ScanEvery,      \* ticks between two scans of a name server: 1
    Expiry,         \* ticks of silence after which a name server removes a broker: 12
    PollEvery       \* ticks between two route requests of a client: 3

Names == Masters \cup Slaves

ASSUME /\ NameServers # {} /\ Holders \subseteq Names
       /\ {HeartbeatEvery, ScanEvery, Expiry, PollEvery} \subseteq Nat \ {0}
       /\ HeartbeatEvery <= Expiry

-----------------------------------------------------------------------------
(* Brokers, tables, routes *)

\* The name and the id identify a broker process; id 0 is the master.
Brokers == (Masters \X {0}) \cup (Slaves \X {1})
Name(broker) == broker[1]
Id(broker) == broker[2]

Topics == {"topic", "TBW102"} \* TBW102 is the default topic: a client whose topic has no route uses its route

Permissions == {"none", "read", "write"} \* no such queue, read-only, read and write

NoRecord == [age |-> 0, version |-> 0] \* the live record of an unknown broker

\* The tables of one name server, all of them in memory.
Tables == [
    queues : [Topics -> [Names -> Permissions]],
    members : [Names -> SUBSET {0, 1}],                \* the ids of each broker name that have an address
    cluster : SUBSET Names,
    live : [Brokers -> [age : Nat, version : Nat]]]    \* ticks since the last registration, and its data version

EmptyTables == [
    queues |-> [t \in Topics |-> [name \in Names |-> "none"]],
    members |-> [name \in Names |-> {}],
    cluster |-> {},
    live |-> [b \in Brokers |-> NoRecord]]

Live(tables) == {b \in Brokers : tables.live[b] # NoRecord}

\* The route of the topic, as a client has it.
Routes == [
    source : {"none", "topic", "default"},             \* the origin of the route: none, the topic, or the default topic
    queues : [Names -> Permissions],
    brokers : SUBSET Brokers]

NoRoute == [source |-> "none", queues |-> [name \in Names |-> "none"], brokers |-> {}]

Long == Expiry + ScanEvery + PollEvery + 1 \* silence is counted only up to this value; a longer silence has the same effects

-----------------------------------------------------------------------------
(* State *)

VARIABLE running      \* the brokers whose process runs
RunningOK == running \subseteq Brokers

VARIABLE serving      \* the name servers whose process runs
ServingOK == serving \subseteq NameServers

VARIABLE brokerCut    \* silent partition: pairs of name server and broker that receive nothing from each other
BrokerCutOK == brokerCut \subseteq NameServers \X Brokers

VARIABLE clientCut    \* the same between name servers and clients
ClientCutOK == clientCut \subseteq NameServers \X Clients

VARIABLE tables       \* the tables of each name server
TablesOK == tables \in [NameServers -> Tables]

VARIABLE connected    \* history: registered brokers whose connection is open, or was closed only by the name server
ConnectedOK == connected \in [NameServers -> SUBSET Brokers]

VARIABLE created      \* the broker names whose brokers have the topic
CreatedOK == created \subseteq Names

VARIABLE heartbeatAge \* ticks since a broker last registered
HeartbeatAgeOK == heartbeatAge \in [Brokers -> 0..HeartbeatEvery]

VARIABLE scanAge      \* ticks since a name server last scanned
ScanAgeOK == scanAge \in [NameServers -> 0..ScanEvery]

VARIABLE pollAge      \* ticks since a client last asked for its route
PollAgeOK == pollAge \in [Clients -> 0..PollEvery]

VARIABLE server       \* the name server that a client asks
ServerOK == server \in [Clients -> NameServers]

VARIABLE answered     \* the clients whose last request was answered; their route is up to date
AnsweredOK == answered \subseteq Clients

VARIABLE route        \* the route that a client has
RouteOK == route \in [Clients -> Routes]

VARIABLE publish      \* the broker names to whose queues a client may send
PublishOK == publish \in [Clients -> SUBSET Names]

VARIABLE silence      \* history: ticks since a registration of a broker last arrived, up to Long
SilenceOK == silence \in [NameServers -> [Brokers -> 0..Long]]

VARIABLE faults       \* history: the number of faults
FaultsOK == faults \in Nat

processes == <<running, serving>>
links == <<brokerCut, clientCut>>
servers == <<tables, connected, scanAge>>
clients == <<pollAge, server, answered, route, publish>>
vars == <<processes, links, servers, created, heartbeatAge, clients, silence, faults>>

TypeOK ==
    /\ RunningOK /\ ServingOK /\ BrokerCutOK /\ ClientCutOK /\ ConnectedOK /\ CreatedOK
    /\ HeartbeatAgeOK /\ ScanAgeOK /\ PollAgeOK /\ ServerOK /\ AnsweredOK /\ RouteOK /\ PublishOK
    /\ SilenceOK /\ FaultsOK
    /\ \A n \in NameServers : \* tables \in [NameServers -> Tables], without building that set
        /\ tables[n].queues \in [Topics -> [Names -> Permissions]]
        /\ tables[n].members \in [Names -> SUBSET {0, 1}]
        /\ tables[n].cluster \subseteq Names
        /\ \A b \in Brokers : tables[n].live[b].age \in 0..(Expiry + ScanEvery) /\ tables[n].live[b].version \in Nat

\* All processes have just started: brokers and clients send their first request within this tick.
Init ==
    /\ running = Brokers /\ serving = NameServers
    /\ brokerCut = {} /\ clientCut = {}
    /\ tables = [n \in NameServers |-> EmptyTables]
    /\ connected = [n \in NameServers |-> {}]
    /\ created = Holders
    /\ heartbeatAge = [b \in Brokers |-> HeartbeatEvery]
    /\ scanAge = [n \in NameServers |-> 0]
    /\ pollAge = [c \in Clients |-> PollEvery]
    /\ server \in [Clients -> NameServers]
    /\ answered = {}
    /\ route = [c \in Clients |-> NoRoute]
    /\ publish = [c \in Clients |-> {}]
    /\ silence = [n \in NameServers |-> [b \in Brokers |-> Long]]
    /\ faults = 0

-----------------------------------------------------------------------------
(* Brokers register *)

TopicsOf(broker, holders) == IF Name(broker) \in holders THEN Topics ELSE {"TBW102"}

\* Only the master sets the queues of its name, or the slave if there is no master.
TakesTopicsFrom(table, b) == \A id \in table.members[Name(b)] : Id(b) <= id

\* A registration is an upsert. It changes queues only if its version is new or the queues are missing.
Registered(table, b, topics) ==
    LET version == Cardinality(topics)
        Takes(t) ==
            /\ t \in topics
            /\ TakesTopicsFrom(table, b)
            /\ table.live[b].version # version \/ table.queues[t][Name(b)] = "none"
    IN  [queues |-> [t \in Topics |->
                        IF Takes(t) THEN [table.queues[t] EXCEPT ![Name(b)] = "write"] ELSE table.queues[t]],
         members |-> [table.members EXCEPT ![Name(b)] = @ \cup {Id(b)}],
         cluster |-> table.cluster \cup {Name(b)},
         live |-> [table.live EXCEPT ![b] = [age |-> 0, version |-> version]]]

\* The name servers that a broker's request reaches.
Reached(b) == {n \in serving : <<n, b>> \notin brokerCut}

RegisterAt(reached, b, topics) ==
    /\ tables' = [n \in NameServers |-> IF n \in reached THEN Registered(tables[n], b, topics) ELSE tables[n]]
    /\ connected' = [n \in NameServers |-> IF n \in reached THEN connected[n] \cup {b} ELSE connected[n]]
    /\ silence' = [n \in NameServers |-> IF n \in reached THEN [silence[n] EXCEPT ![b] = 0] ELSE silence[n]]

\* A broker registers at its start, and then with the period registerNameServerPeriod.
Register(b) ==
    /\ b \in running
    /\ heartbeatAge[b] = HeartbeatEvery
    /\ heartbeatAge' = [heartbeatAge EXCEPT ![b] = 0]
    /\ RegisterAt(Reached(b), b, TopicsOf(b, created))
    /\ UNCHANGED <<processes, links, scanAge, created, clients, faults>>

\* A producer sends by the default topic's route. The master creates the topic and registers at once.
AutoCreate(c, name) ==
    LET b == <<name, 0>>
    IN  /\ route[c].source = "default"
        /\ name \in publish[c] \ created
        /\ b \in running
        /\ created' = created \cup {name}
        /\ RegisterAt(Reached(b), b, TopicsOf(b, created'))
        /\ UNCHANGED <<processes, links, scanAge, heartbeatAge, clients, faults>>

-----------------------------------------------------------------------------
(* Name servers remove brokers *)

\* The queues of a name are removed with its last id.
Forgotten(table, gone) ==
    LET members == [name \in Names |-> {id \in table.members[name] : <<name, id>> \notin gone}]
    IN  [queues |-> [t \in Topics |->
                        [name \in Names |-> IF members[name] = {} THEN "none" ELSE table.queues[t][name]]],
         members |-> members,
         cluster |-> {name \in table.cluster : members[name] # {}},
         live |-> [b \in Brokers |-> IF b \in gone THEN NoRecord ELSE table.live[b]]]

\* lost: pairs of a name server and a broker that it removes.
Forget(lost) ==
    LET Gone(n) == {b \in Brokers : <<n, b>> \in lost}
    IN  tables' = [n \in NameServers |-> Forgotten(tables[n], Gone(n))]

\* The name servers detect that the connections of these brokers have closed.
Disconnect(lost) ==
    /\ Forget(lost)
    /\ connected' = [n \in NameServers |-> {b \in connected[n] : <<n, b>> \notin lost}]

Expired(n) == {b \in Live(tables[n]) : tables[n].live[b].age > Expiry}

Scan(n) ==
    /\ n \in serving
    /\ scanAge[n] = ScanEvery
    /\ scanAge' = [scanAge EXCEPT ![n] = 0]
    /\ Forget({n} \X Expired(n))
    /\ UNCHANGED <<processes, links, connected, created, heartbeatAge, clients, silence, faults>>

-----------------------------------------------------------------------------
(* Clients poll *)

\* The answer to a route request contains every queue of the topic and every broker of their names. An empty
\* route is response code 17.
RouteOf(table, topic) ==
    LET queues == table.queues[topic]
        brokers == {b \in Brokers : queues[Name(b)] # "none" /\ Id(b) \in table.members[Name(b)]}
    IN  IF brokers = {} THEN NoRoute
        ELSE [source |-> IF topic = "topic" THEN "topic" ELSE "default", queues |-> queues, brokers |-> brokers]

\* A topic without a route of its own gets the default topic's route, if there is one.
RouteFrom(table, old) ==
    LET own == RouteOf(table, "topic")
    IN  IF own # NoRoute THEN own ELSE RouteOf(table, "TBW102")

\* A name is publishable if its queue is writable and its master is in the route.
Publishable(r) == {name \in Names : r.queues[name] = "write" /\ <<name, 0>> \in r.brokers}

Reaches(c, n) == n \in serving /\ <<n, c>> \notin clientCut

Poll(c) ==
    /\ pollAge[c] = PollEvery
    /\ Reaches(c, server[c])
    /\ pollAge' = [pollAge EXCEPT ![c] = 0]
    /\ answered' = answered \cup {c}
    /\ route' = [route EXCEPT ![c] = RouteFrom(tables[server[c]], @)]
    /\ publish' = [publish EXCEPT ![c] = Publishable(route'[c])]
    /\ UNCHANGED <<processes, links, servers, created, heartbeatAge, server, silence, faults>>

\* No answer: the client keeps its route, and its next request goes to another name server.
PollFails(c, next) ==
    /\ pollAge[c] = PollEvery
    /\ ~Reaches(c, server[c])
    /\ next # server[c] \/ NameServers = {next}
    /\ pollAge' = [pollAge EXCEPT ![c] = 0]
    /\ answered' = answered \ {c}
    /\ server' = [server EXCEPT ![c] = next]
    /\ UNCHANGED <<processes, links, servers, created, heartbeatAge, route, publish, silence, faults>>

-----------------------------------------------------------------------------
(* Time advances only when no action is due *)

Older(age, most) == IF age < most THEN age + 1 ELSE most

Tick ==
    /\ \A b \in running : heartbeatAge[b] < HeartbeatEvery
    /\ \A n \in serving : scanAge[n] < ScanEvery
    /\ \A c \in Clients : pollAge[c] < PollEvery
    /\ heartbeatAge' = [b \in Brokers |-> IF b \in running THEN heartbeatAge[b] + 1 ELSE 0]
    /\ scanAge' = [n \in NameServers |-> IF n \in serving THEN scanAge[n] + 1 ELSE 0]
    /\ pollAge' = [c \in Clients |-> pollAge[c] + 1]
    /\ tables' = [n \in NameServers |->
                    [tables[n] EXCEPT !.live =
                        [b \in Brokers |-> IF @[b] = NoRecord THEN NoRecord ELSE [@[b] EXCEPT !.age = @ + 1]]]]
    /\ silence' = [n \in NameServers |-> [b \in Brokers |-> Older(silence[n][b], Long)]]
    /\ UNCHANGED <<processes, links, connected, created, server, answered, route, publish, faults>>

-----------------------------------------------------------------------------
(* Faults *)

\* A broker's process ends. The name servers that see its connection close remove it at once.
BrokerDies(b) ==
    /\ b \in running
    /\ running' = running \ {b}
    /\ heartbeatAge' = [heartbeatAge EXCEPT ![b] = 0]
    /\ Disconnect({n \in Reached(b) : b \in connected[n]} \X {b})
    /\ faults' = faults + 1
    /\ UNCHANGED <<serving, links, scanAge, created, clients, silence>>

\* A broker's machine crashes. No connection closes, and no name server notices.
MachineDies(b) ==
    /\ b \in running
    /\ running' = running \ {b}
    /\ heartbeatAge' = [heartbeatAge EXCEPT ![b] = 0]
    /\ faults' = faults + 1
    /\ UNCHANGED <<serving, links, servers, created, clients, silence>>

\* A connection of a running broker closes. The broker opens another one for its next registration.
CloseChannel(n, b) ==
    /\ b \in running \cap connected[n]
    /\ n \in Reached(b)
    /\ Disconnect({<<n, b>>})
    /\ faults' = faults + 1
    /\ UNCHANGED <<processes, links, scanAge, created, heartbeatAge, clients, silence>>

CutBroker(n, b) ==
    /\ <<n, b>> \notin brokerCut
    /\ brokerCut' = brokerCut \cup {<<n, b>>}
    /\ faults' = faults + 1
    /\ UNCHANGED <<processes, clientCut, servers, created, heartbeatAge, clients, silence>>

CutClient(n, c) ==
    /\ <<n, c>> \notin clientCut
    /\ clientCut' = clientCut \cup {<<n, c>>}
    /\ faults' = faults + 1
    /\ UNCHANGED <<processes, brokerCut, servers, created, heartbeatAge, clients, silence>>

\* A name server's process ends. Its tables are lost, because they were only in memory.
NameServerDies(n) ==
    /\ n \in serving
    /\ serving' = serving \ {n}
    /\ tables' = [tables EXCEPT ![n] = EmptyTables]
    /\ connected' = [connected EXCEPT ![n] = {}]
    /\ scanAge' = [scanAge EXCEPT ![n] = 0]
    /\ faults' = faults + 1
    /\ UNCHANGED <<running, links, created, heartbeatAge, clients, silence>>

\* An operator removes the write permission of a broker name at one name server. It lasts until that name
\* registers a new version there.
WipeWrite(n, name) ==
    LET Wiped(t) == IF tables[n].queues[t][name] = "write" THEN "read" ELSE tables[n].queues[t][name]
    IN  /\ n \in serving
        /\ \E t \in Topics : tables[n].queues[t][name] = "write"
        /\ tables' = [tables EXCEPT ![n].queues = [t \in Topics |-> [@[t] EXCEPT ![name] = Wiped(t)]]]
        /\ faults' = faults + 1
        /\ UNCHANGED <<processes, links, connected, scanAge, created, heartbeatAge, clients, silence>>

-----------------------------------------------------------------------------
(* Repairs *)

BrokerStarts(b) ==
    /\ b \notin running
    /\ running' = running \cup {b}
    /\ heartbeatAge' = [heartbeatAge EXCEPT ![b] = HeartbeatEvery]
    /\ UNCHANGED <<serving, links, servers, created, clients, silence, faults>>

NameServerStarts(n) ==
    /\ n \notin serving
    /\ serving' = serving \cup {n}
    /\ UNCHANGED <<running, links, servers, created, heartbeatAge, clients, silence, faults>>

HealBroker(n, b) ==
    /\ <<n, b>> \in brokerCut
    /\ brokerCut' = brokerCut \ {<<n, b>>}
    /\ UNCHANGED <<processes, clientCut, servers, created, heartbeatAge, clients, silence, faults>>

HealClient(n, c) ==
    /\ <<n, c>> \in clientCut
    /\ clientCut' = clientCut \ {<<n, c>>}
    /\ UNCHANGED <<processes, brokerCut, servers, created, heartbeatAge, clients, silence, faults>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Work ==
    \/ \E b \in Brokers : Register(b)
    \/ \E c \in Clients, name \in Names : AutoCreate(c, name)
    \/ \E n \in NameServers : Scan(n)
    \/ \E c \in Clients : Poll(c) \/ \E next \in NameServers : PollFails(c, next)
    \/ Tick

Fault ==
    \/ \E b \in Brokers : BrokerDies(b) \/ MachineDies(b)
    \/ \E n \in NameServers, b \in Brokers : CloseChannel(n, b) \/ CutBroker(n, b)
    \/ \E n \in NameServers, c \in Clients : CutClient(n, c)
    \/ \E n \in NameServers : NameServerDies(n)
    \/ \E n \in NameServers, name \in Names : WipeWrite(n, name)

Repair ==
    \/ \E b \in Brokers : BrokerStarts(b)
    \/ \E n \in NameServers : NameServerStarts(n)
    \/ \E n \in NameServers, b \in Brokers : HealBroker(n, b)
    \/ \E n \in NameServers, c \in Clients : HealClient(n, c)

Next == Work \/ Fault \/ Repair

\* Time passes, and actions that are due are taken. Repairs are not fair. Each subscript is what the action changes
\* in every step; TLC compares `vars` much slower.
TickFairness == WF_vars(Tick)
RegisterFairness == \A b \in Brokers : WF_heartbeatAge(Register(b))
ScanFairness == \A n \in NameServers : WF_scanAge(Scan(n))
PollFairness == \A c \in Clients : WF_pollAge(Poll(c) \/ \E next \in NameServers : PollFails(c, next))

Fairness == TickFairness /\ RegisterFairness /\ ScanFairness /\ PollFairness

FaultsEnd == <>[][faults' = faults]_vars

Spec == Init /\ [][Next]_vars /\ Fairness /\ FaultsEnd

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* ROUTE-1
TablesAgree ==
    \A n \in NameServers :
        LET t == tables[n] IN
        /\ \A topic \in Topics, name \in Names : t.queues[topic][name] # "none" => t.members[name] # {}
        /\ \A b \in Brokers : Id(b) \in t.members[Name(b)] <=> b \in Live(t)
        /\ t.cluster = {name \in Names : t.members[name] # {}}

\* ROUTE-2: a broker that registers in time stays in the table, unless its connection is closed
LiveBrokerKept ==
    \A n \in NameServers : \A b \in connected[n] : silence[n][b] <= Expiry => b \in Live(tables[n])

\* ROUTE-3: a route has no broker that was silent for too long towards the client's name server
DeadBrokerForgotten ==
    \A c \in answered : \A b \in route[c].brokers : silence[server[c]][b] <= Expiry + ScanEvery + PollEvery

\* ROUTE-4
MasterOnlyWrites ==
    \A c \in Clients : \A name \in publish[c] : route[c].queues[name] = "write" /\ <<name, 0>> \in route[c].brokers

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ \A n \in NameServers :
        /\ Live(tables[n]) \subseteq connected[n]
        /\ \A b \in Live(tables[n]) : tables[n].live[b].age = silence[n][b]
        /\ \A b \in Brokers : tables[n].live[b].version = 0 => tables[n].live[b].age = 0
        /\ \A name \in Names : tables[n].queues["topic"][name] # "none" => name \in created
        /\ \A name \in Names : tables[n].queues["TBW102"][name] = "none" <=> tables[n].members[name] = {}
        /\ n \notin serving => tables[n] = EmptyTables /\ connected[n] = {} /\ scanAge[n] = 0
    /\ \A b \in Brokers \ running : heartbeatAge[b] = 0
    /\ \A c \in Clients :
        /\ route[c].source = "none" <=> route[c].brokers = {}
        /\ publish[c] = Publishable(route[c])
        /\ \A b \in route[c].brokers : route[c].source = "topic" => Name(b) \in created
    /\ Holders \subseteq created
    /\ Cardinality(Brokers \ running) + Cardinality(NameServers \ serving) +
       Cardinality(brokerCut) + Cardinality(clientCut) <= faults

-----------------------------------------------------------------------------
(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A fault counts once and breaks something.
FaultsCount ==
    [][faults' # faults =>
        /\ faults' = faults + 1
        /\ \/ running' # running \/ serving' # serving \/ brokerCut' # brokerCut \/ clientCut' # clientCut
           \/ tables' # tables \/ connected' # connected]_vars

\* A client's knowledge changes only when its request is due, and the next request is one period later. UNCHANGED
\* comes first, here and below, only because it takes TLC less time.
AskedWhenDue ==
    [][UNCHANGED clients \/ \A c \in Clients :
        \/ pollAge[c] = PollEvery /\ pollAge'[c] = 0
        \/ /\ pollAge'[c] \in {pollAge[c], pollAge[c] + 1}
           /\ server'[c] = server[c] /\ route'[c] = route[c] /\ publish'[c] = publish[c]
           /\ (c \in answered') = (c \in answered)]_vars

\* After a broker ends, the name servers that it reaches have no connection of it, or the whole machine
\* crashed silently.
EndSeen ==
    [][\A b \in running \ running' :
        UNCHANGED <<tables, connected>> \/ \A n \in Reached(b) : b \notin connected'[n]]_vars

\* Every step that should be possible is enabled: due actions, repairs of broken parts, and faults of working
\* parts. Faults of broken parts are disabled.
NeverStuck ==
    /\ \A b \in running :
        /\ heartbeatAge[b] = HeartbeatEvery => ENABLED <<Register(b)>>_heartbeatAge
        /\ ENABLED (BrokerDies(b) /\ b \notin running' /\
                    \A n \in serving : <<n, b>> \in brokerCut \/ b \notin connected'[n])
        /\ ENABLED <<MachineDies(b)>>_running
    /\ \A b \in Brokers \ running :
        ENABLED <<BrokerStarts(b)>>_running /\ ~ENABLED BrokerDies(b) /\ ~ENABLED MachineDies(b)
    /\ \A n \in serving :
        /\ scanAge[n] = ScanEvery => ENABLED <<Scan(n)>>_scanAge
        /\ \A t \in {"topic", "TBW102"}, name \in Names :
            tables[n].queues[t][name] = "write" => ENABLED <<WipeWrite(n, name)>>_tables
        /\ ENABLED <<NameServerDies(n)>>_serving
    /\ \A n \in NameServers \ serving : ENABLED <<NameServerStarts(n)>>_serving /\ ~ENABLED NameServerDies(n)
    /\ \A n \in NameServers, b \in Brokers :
        IF <<n, b>> \in brokerCut THEN ENABLED <<HealBroker(n, b)>>_brokerCut /\ ~ENABLED CutBroker(n, b)
        ELSE /\ ENABLED <<CutBroker(n, b)>>_brokerCut
             /\ (n \in serving /\ b \in running \cap connected[n] => ENABLED <<CloseChannel(n, b)>>_connected)
    /\ \A n \in NameServers, c \in Clients :
        IF <<n, c>> \in clientCut THEN ENABLED <<HealClient(n, c)>>_clientCut /\ ~ENABLED CutClient(n, c)
        ELSE ENABLED <<CutClient(n, c)>>_clientCut
    /\ \A c \in Clients :
        /\ pollAge[c] = PollEvery =>
            IF server[c] \in serving /\ <<server[c], c>> \notin clientCut THEN ENABLED <<Poll(c)>>_pollAge
            ELSE \E n \in NameServers : ENABLED <<PollFails(c, n)>>_pollAge
        /\ \A name \in Names \ created :
            /\ route[c].source = "default" /\ route[c].queues[name] = "write"
            /\ <<name, 0>> \in running \cap route[c].brokers
            => ENABLED <<AutoCreate(c, name)>>_created
    /\ \/ \E b \in running : heartbeatAge[b] = HeartbeatEvery
       \/ \E n \in serving : scanAge[n] = ScanEvery
       \/ \E c \in Clients : pollAge[c] = PollEvery
       \/ ENABLED Tick

\* A registration arrives wherever it can and nowhere else, and the name server that receives it has the
\* broker in its tables.
RegistrationArrives ==
    [][UNCHANGED <<heartbeatAge, silence>> \/ \A b \in Brokers, n \in NameServers :
        LET arrives == n \in serving /\ <<n, b>> \notin brokerCut
        IN  /\ heartbeatAge[b] = HeartbeatEvery /\ heartbeatAge'[b] = 0 /\ b \in running' /\ arrives =>
                silence'[n][b] = 0
            /\ silence'[n][b] < silence[n][b] => arrives /\ b \in running /\ b \in Live(tables'[n])]_vars

\* A new version from a master makes its queues writable. Repeating the old version does not.
NewVersionWritable ==
    [][UNCHANGED tables \/ \A b \in Brokers, n \in NameServers :
        LET was == tables[n].live[b].version
            now == tables'[n].live[b].version
        IN  /\ Id(b) = 0 /\ now \notin {was, 0} => tables'[n].queues["TBW102"][Name(b)] = "write"
            /\ \A t \in Topics :
                tables[n].queues[t][Name(b)] = "read" /\ tables'[n].queues[t][Name(b)] = "write" =>
                    \E id \in {0, 1} :
                        <<Name(b), id>> \in Brokers /\
                        tables'[n].live[<<Name(b), id>>].version # tables[n].live[<<Name(b), id>>].version]_vars

\* A running name server answers the client. It prefers the topic's route to the default topic's.
RouteAnswered ==
    [][UNCHANGED pollAge \/ \A c \in Clients :
        LET table == tables[server[c]] IN
        pollAge[c] = PollEvery /\ pollAge'[c] = 0 /\ c \in answered' =>
            /\ server[c] \in serving /\ <<server[c], c>> \notin clientCut
            /\ route'[c].source =
                IF \E name \in Names : table.queues["topic"][name] # "none" THEN "topic"
                ELSE IF table.cluster # {} THEN "default" ELSE "none"]_vars

-----------------------------------------------------------------------------
(* Liveness *)

\* The broker has the topic, runs, and reaches every name server. The client is cut off from one name server
\* at most, and not from all.
Steady(b, c) ==
    LET cut == {n \in NameServers : <<n, c>> \in clientCut} IN
    /\ b \in running /\ Name(b) \in created
    /\ serving = NameServers
    /\ \A n \in NameServers : <<n, b>> \notin brokerCut
    /\ Cardinality(cut) <= 1 /\ cut # NameServers

\* ROUTE-7
EventuallyRouted ==
    \A b \in Brokers, c \in Clients :
        <>[]Steady(b, c) => <>[](route[c].source = "topic" /\ b \in route[c].brokers)

=============================================================================
