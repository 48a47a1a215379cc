----------------------------- MODULE RequestReply ------------------------------
(***************************************************************************)
(* A client sends a message that requests a reply, and waits. A consumer   *)
(* of the message sends the reply to the broker. The broker pushes it to   *)
(* the client that waits, over the connection on which this client sent    *)
(* its last heartbeat. A request ends with its reply, or with an error:    *)
(* the send is refused, or the time limit is over.                         *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The topic of the requests: Flush, Replication and Delivery say when  *)
(*    a stored message is read; here a consumer may read a stored request  *)
(*    at any time and any number of times, and replies each time.          *)
(*  - The broker: it keeps nothing but the table of connected clients, so  *)
(*    its restart is the loss of all connections, one after the other.     *)
(*  - Connections: what is on its way to a client is lost with its         *)
(*    connection.                                                          *)
(*  - Time: a request that is not patient may expire at any moment.        *)
(*  - The reply topic: the broker also stores replies, which no client of  *)
(*    this protocol reads.                                                 *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS
    Clients, \* the ids of the clients, strings
    Calls,   \* the correlation ids of the requests, strings
    Patient  \* the requests without a time limit

ASSUME Clients # {} /\ Calls # {} /\ Patient \subseteq Calls

None == "none"
Ends == {"reply", "timeout", "refused"}

-----------------------------------------------------------------------------
(* State *)

VARIABLE registered \* the clients that the broker knows: their heartbeat was accepted on a connection that is open
RegisteredOK == registered \subseteq Clients

VARIABLE stored     \* the requests that are in their topic, where consumers read them
StoredOK == stored \subseteq Calls

VARIABLE pushes     \* replies on their way from the broker to a client, by correlation id
PushesOK == pushes \subseteq [call : Calls, to : Clients]

VARIABLE confirmed  \* the requests for which the sender of a reply received SUCCESS
ConfirmedOK == confirmed \subseteq Calls

VARIABLE caller     \* by request: the client that sent it
CallerOK == caller \in [Calls -> Clients \cup {None}]

VARIABLE outcome    \* by request: its state at the client; "lost" if the process that waited has ended
OutcomeOK == outcome \in [Calls -> {"new", "waiting", "lost"} \cup Ends]

VARIABLE got        \* by request: the correlation id of the reply that it ended with
GotOK == got \in [Calls -> Calls \cup {None}]

VARIABLE results    \* by request: how many results the application received, replies and errors
ResultsOK == results \in [Calls -> Nat]

VARIABLE received   \* the requests for which a reply reached a client
ReceivedOK == received \subseteq Calls

broker == <<registered, stored, pushes, confirmed>>
client == <<caller, outcome, got, results, received>>
vars == <<broker, client>>

TypeOK ==
    RegisteredOK /\ StoredOK /\ PushesOK /\ ConfirmedOK /\ CallerOK /\ OutcomeOK /\ GotOK /\ ResultsOK /\ ReceivedOK

Init ==
    /\ registered = {}
    /\ stored = {}
    /\ pushes = {}
    /\ confirmed = {}
    /\ caller = [r \in Calls |-> None]
    /\ outcome = [r \in Calls |-> "new"]
    /\ got = [r \in Calls |-> None]
    /\ results = [r \in Calls |-> 0]
    /\ received = {}

-----------------------------------------------------------------------------
(* Connections *)

Push(r, c) == [call |-> r, to |-> c]

\* The broker accepts a heartbeat.
Connect(c) ==
    /\ c \notin registered
    /\ registered' = registered \cup {c}
    /\ UNCHANGED <<stored, pushes, confirmed, client>>

WithoutPushesTo(c) == {p \in pushes : p.to # c}

\* The connection is lost, or the broker restarts.
Disconnect(c) ==
    /\ c \in registered
    /\ registered' = registered \ {c}
    /\ pushes' = WithoutPushesTo(c)
    /\ UNCHANGED <<stored, confirmed, client>>

Waits(c, r) == outcome[r] = "waiting" /\ caller[r] = c

\* The process of a client ends while requests wait. Another process may use its client id later.
Restart(c) ==
    /\ \E r \in Calls : Waits(c, r)
    /\ outcome' = [r \in Calls |-> IF Waits(c, r) THEN "lost" ELSE outcome[r]]
    /\ registered' = registered \ {c}
    /\ pushes' = WithoutPushesTo(c)
    /\ UNCHANGED <<stored, confirmed, caller, got, results, received>>

-----------------------------------------------------------------------------
(* Requests *)

\* The client sends the request, after the broker has accepted its heartbeat.
Request(c, r) ==
    /\ outcome[r] = "new"
    /\ c \in registered
    /\ caller' = [caller EXCEPT ![r] = c]
    /\ outcome' = [outcome EXCEPT ![r] = "waiting"]
    /\ UNCHANGED <<broker, got, results, received>>

\* The broker stores the request, perhaps after the client stopped waiting.
Store(r) ==
    /\ outcome[r] \notin {"new", "refused"}
    /\ r \notin stored
    /\ stored' = stored \cup {r}
    /\ UNCHANGED <<registered, pushes, confirmed, client>>

\* The request ends: the application receives a result.
Finish(r, end) ==
    /\ outcome' = [outcome EXCEPT ![r] = end]
    /\ results' = [results EXCEPT ![r] = @ + 1]

\* The send is refused: the request is certainly not stored, now or later.
Refuse(r) ==
    /\ outcome[r] = "waiting"
    /\ r \notin stored
    /\ Finish(r, "refused")
    /\ UNCHANGED <<broker, caller, got, received>>

\* The time limit is over.
Expire(r) ==
    /\ outcome[r] = "waiting"
    /\ r \notin Patient
    /\ Finish(r, "timeout")
    /\ UNCHANGED <<broker, caller, got, received>>

-----------------------------------------------------------------------------
(* Replies *)

\* A consumer replies, and the broker pushes the reply to the client that the request names. If this client is not
\* connected, the consumer receives an error, and no state changes.
Reply(r) ==
    /\ r \in stored
    /\ caller[r] \in registered
    /\ Push(r, caller[r]) \notin pushes
    /\ pushes' = pushes \cup {Push(r, caller[r])}
    /\ UNCHANGED <<registered, stored, confirmed, client>>

\* The reply reaches the client, which gives it to the request that waits for it, or drops it. The client confirms it in
\* both cases. The sender of the reply receives SUCCESS if the confirmation and the answer arrive.
Receive(c, r, arrives) ==
    /\ Push(r, c) \in pushes
    /\ pushes' = pushes \ {Push(r, c)}
    /\ received' = received \cup {r}
    /\ IF Waits(c, r)
       THEN Finish(r, "reply") /\ got' = [got EXCEPT ![r] = r]
       ELSE UNCHANGED <<outcome, results, got>>
    /\ confirmed' = IF arrives THEN confirmed \cup {r} ELSE confirmed
    /\ UNCHANGED <<registered, stored, caller>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E c \in Clients : Connect(c) \/ Disconnect(c) \/ Restart(c)
    \/ \E r \in Calls : Store(r) \/ Refuse(r) \/ Expire(r) \/ Reply(r)
    \/ \E c \in Clients, r \in Calls : Request(c, r) \/ \E arrives \in BOOLEAN : Receive(c, r, arrives)

\* Time passes. For a patient request: clients connect again, the request is stored or refused, and consumers reply until a
\* reply is received. A request with a time limit may get no reply at all.
Connects == \A c \in Clients : WF_vars(Connect(c))
Stores == \A r \in Patient : WF_vars(Store(r))
Expires == \A r \in Calls : WF_vars(Expire(r))
Replies == \A r \in Patient : SF_vars(Reply(r))
Receives == \A r \in Patient : SF_vars(\E c \in Clients, arrives \in BOOLEAN : Receive(c, r, arrives))

Fairness == Connects /\ Stores /\ Expires /\ Replies /\ Receives

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* REPLY-1: a reply goes to the client that sent the request, and ends the request that it belongs to
ReplyToItsRequester ==
    /\ \A p \in pushes : p.to = caller[p.call]
    /\ \A r \in Calls : got[r] \in {None, r} /\ (got[r] = r <=> outcome[r] = "reply")

\* REPLY-2: a request ends once, with a reply or with an error
RequestEndsOnce == \A r \in Calls : results[r] = IF outcome[r] \in Ends THEN 1 ELSE 0

\* REPLY-3: the sender of a reply receives SUCCESS only if the reply reached a client
ReplyConfirmed == confirmed \subseteq received

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ \A r \in Calls :
        /\ outcome[r] = "new" <=> caller[r] = None
        /\ outcome[r] = "new" => r \notin stored
        /\ outcome[r] = "refused" => r \notin stored
        /\ outcome[r] = "timeout" => r \notin Patient
        /\ outcome[r] = "reply" => r \in received
        /\ r \in received => r \in stored
    /\ \A p \in pushes : p.call \in stored /\ p.to \in registered

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A request is sent by a registered client, once.
CallersSet ==
    [][caller' # caller =>
        \E r \in Calls, c \in registered :
            /\ outcome[r] = "new"
            /\ caller' = [caller EXCEPT ![r] = c] /\ outcome' = [outcome EXCEPT ![r] = "waiting"]
            /\ UNCHANGED <<broker, got, results, received>>]_vars

Moves ==
    {<<"new", "waiting">>, <<"waiting", "reply">>, <<"waiting", "timeout">>, <<"waiting", "refused">>, <<"waiting", "lost">>}

\* The end of a request has its cause.
OutcomesFollow ==
    [][\A r \in Calls : outcome'[r] # outcome[r] =>
        /\ <<outcome[r], outcome'[r]>> \in Moves
        /\ outcome'[r] = "waiting" => caller'[r] \in registered
        /\ outcome'[r] = "reply" => Push(r, caller[r]) \in pushes
        /\ outcome'[r] \in {"timeout", "refused"} => UNCHANGED <<broker, received, got>>
        /\ outcome'[r] = "lost" =>
            /\ registered' = registered \ {caller[r]} /\ pushes' = WithoutPushesTo(caller[r])
            /\ \A s \in Calls : outcome'[s] # outcome[s] => caller[s] = caller[r]
            /\ \A s \in Calls : caller[s] = caller[r] => outcome'[s] # "waiting"
            /\ UNCHANGED <<stored, confirmed, received, got>>
        /\ outcome'[r] # "lost" => outcome' = [outcome EXCEPT ![r] = outcome'[r]]]_vars

\* Stored requests stay stored.
StoredGrows ==
    [][stored' # stored =>
        \E r \in Calls : r \notin stored /\ outcome[r] # "new" /\ stored' = stored \cup {r}
            /\ UNCHANGED <<registered, pushes, confirmed, client>>]_vars

\* A reply is pushed to a client that the broker knows. It is received, or lost with its connection.
PushesFollow ==
    [][pushes' # pushes =>
        \/ \E r \in stored : caller[r] \in registered /\ pushes' = pushes \cup {Push(r, caller[r])}
            /\ UNCHANGED <<registered, stored, confirmed, client>>
        \/ \E p \in pushes : pushes' = pushes \ {p} /\ p.call \in received' /\ UNCHANGED <<registered, stored, caller>>
        \/ \E c \in registered : registered' = registered \ {c} /\ pushes' = WithoutPushesTo(c)
            /\ UNCHANGED <<stored, confirmed, caller, got, results, received>>]_vars

\* One client at a time connects, or is lost with what was on its way to it.
RegisteredMoves ==
    [][registered' # registered =>
        \E c \in Clients :
            \/ c \notin registered /\ registered' = registered \cup {c} /\ UNCHANGED <<stored, pushes, confirmed, client>>
            \/ c \in registered /\ registered' = registered \ {c} /\ pushes' = WithoutPushesTo(c)]_vars

\* A reply reaches a client once for each push.
ReceivedGrows ==
    [][received' # received =>
        \E p \in pushes : received' = received \cup {p.call} /\ pushes' = pushes \ {p}
            /\ (outcome[p.call] = "waiting" => outcome'[p.call] = "reply")]_vars

\* SUCCESS follows a push that was received.
ToldGrows ==
    [][confirmed' # confirmed => \E p \in pushes : confirmed' = confirmed \cup {p.call} /\ pushes' = pushes \ {p}]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A c \in Clients :
        IF c \in registered
        THEN ENABLED (Next /\ registered' = registered \ {c} /\ outcome' = outcome)
        ELSE ENABLED (Next /\ registered' = registered \cup {c})
    /\ \A r \in Calls :
        /\ outcome[r] = "new" => \A c \in registered : ENABLED (Next /\ caller'[r] = c)
        /\ outcome[r] = "waiting" => ENABLED (Next /\ outcome'[r] = "lost")
        /\ outcome[r] = "waiting" /\ r \notin Patient => ENABLED (Next /\ outcome'[r] = "timeout")
        /\ outcome[r] = "waiting" /\ r \notin stored => ENABLED (Next /\ outcome'[r] = "refused")
        /\ outcome[r] \in {"waiting", "timeout", "lost"} /\ r \notin stored => ENABLED (Next /\ stored' = stored \cup {r})
        /\ r \in stored /\ caller[r] \in registered =>
            Push(r, caller[r]) \in pushes \/ ENABLED (Next /\ pushes' = pushes \cup {Push(r, caller[r])})
    /\ \A p \in pushes :
        /\ ENABLED (Next /\ pushes' = pushes \ {p} /\ confirmed' = confirmed \cup {p.call})
        /\ ENABLED (Next /\ pushes' = pushes \ {p} /\ confirmed' = confirmed /\ p.call \in received')
        /\ outcome[p.call] = "waiting" => ENABLED (Next /\ outcome'[p.call] = "reply")

-----------------------------------------------------------------------------
(* Liveness *)

\* REPLY-4: each request ends: with its reply, with an error, or with its process. A patient request ends with its reply,
\* or because it is refused, or with its process.
RequestEnds == \A r \in Calls : outcome[r] = "waiting" ~> outcome[r] # "waiting"

=============================================================================
