---------------------------- MODULE TraceRouting ----------------------------
(***************************************************************************)
(* Checks that the event logs of name servers are a behaviour of Routing.  *)
(*                                                                         *)
(* conformance/traces/name_server.py converts the logs of some name        *)
(* servers into traces: one of the topics is "topic", a tick is a second,  *)
(* brokers and name servers are named in the order in which they appear.   *)
(* Brokers and clients are not part of these traces: a broker is running   *)
(* when it registers, and a connection may close for any reason.           *)
(*  - A short list of topics is recorded. Otherwise a route that names the *)
(*    topic shows that the broker has it. A slave may list it late.        *)
(*  - Administrative changes are not recorded: a queue that a route shows  *)
(*    as read-only was made read-only, if it was writable before.          *)
(*  - Seconds are rounded to whole numbers, so an age may be off by one.   *)
(***************************************************************************)
EXTENDS Routing, Sequences, TraceData

VARIABLES t, l \* the index of the trace, and the index of its next event

TraceView == <<vars, t, l>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

TraceInit ==
    /\ t \in DOMAIN Traces /\ l = 1
    /\ Init
    /\ server = [c \in Clients |-> CHOOSE n \in NameServers : TRUE]

unseen == <<processes, links, scanAge, heartbeatAge, clients, faults>>

-----------------------------------------------------------------------------
(* Brokers *)

Listed == "lists" \in DOMAIN Event

Made ==
    /\ Hidden("register")
    /\ ~Listed
    /\ Event.broker[1] \notin created
    /\ created' = created \cup {Event.broker[1]}
    /\ UNCHANGED <<unseen, tables, connected, silence>>

Known ==
    /\ Is("register")
    /\ \E holders \in
            IF Listed THEN {IF Event.lists THEN created \cup {Name(Event.broker)} ELSE created \ {Name(Event.broker)}}
            ELSE {created} \cup (IF Id(Event.broker) = 1 THEN {{}} ELSE {}) :
        RegisterAt({Event.server}, Event.broker, TopicsOf(Event.broker, holders))
    /\ UNCHANGED <<unseen, created>>

\* A sign of life without a list of topics.
Refreshed ==
    /\ Is("refresh")
    /\ LET n == Event.server
           b == Event.broker
       IN  /\ b \in Live(tables[n])
           /\ tables' = [tables EXCEPT ![n].live[b].age = 0]
           /\ silence' = [silence EXCEPT ![n][b] = 0]
    /\ UNCHANGED <<unseen, connected, created>>

\* The broker unregistered, or its connection closed.
Left ==
    /\ Is("leave")
    /\ Event.broker \in Live(tables[Event.server])
    /\ Disconnect({<<Event.server, Event.broker>>})
    /\ UNCHANGED <<unseen, created, silence>>

Silent ==
    /\ Is("expire")
    /\ Event.broker \in Live(tables[Event.server])
    /\ tables[Event.server].live[Event.broker].age >= Expiry
    /\ Forget({<<Event.server, Event.broker>>})
    /\ UNCHANGED <<unseen, connected, created, silence>>

-----------------------------------------------------------------------------
(* Clients *)

Shown ==
    /\ Is("route")
    /\ LET shown == RouteOf(tables[Event.server], Event.topic)
       IN  shown.brokers = Event.brokers /\ {name \in Names : shown.queues[name] = "write"} = Event.writable
    /\ UNCHANGED vars

MadeReadOnly ==
    /\ Hidden("route")
    /\ \E b \in Event.brokers :
        /\ Name(b) \notin Event.writable
        /\ tables[Event.server].queues[Event.topic][Name(b)] = "write"
        /\ WipeWrite(Event.server, Name(b))

-----------------------------------------------------------------------------
(* Time, and name servers *)

\* Several ticks at once. A broker that is silent for longer should have been removed.
Elapsed ==
    /\ Is("tick")
    /\ \A n \in NameServers : \A b \in Live(tables[n]) :
        tables[n].live[b].age + Event.by <= Expiry + ScanEvery + 1
    /\ tables' = [n \in NameServers |->
                    [tables[n] EXCEPT !.live =
                        [b \in Brokers |-> IF @[b] = NoRecord THEN NoRecord ELSE [@[b] EXCEPT !.age = @ + Event.by]]]]
    /\ silence' = [n \in NameServers |-> [b \in Brokers |->
                    IF silence[n][b] + Event.by < Long THEN silence[n][b] + Event.by ELSE Long]]
    /\ UNCHANGED <<unseen, connected, created>>

Restarted ==
    /\ Is("restart")
    /\ \/ Event.server \in serving /\ NameServerDies(Event.server)
       \/ Event.server \notin serving /\ NameServerStarts(Event.server)

TraceNext ==
    \/ Made \/ Known \/ Refreshed \/ Left \/ Silent \/ Shown \/ MadeReadOnly \/ Elapsed \/ Restarted

=============================================================================
