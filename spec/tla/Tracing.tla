-------------------------------- MODULE Tracing --------------------------------
(***************************************************************************)
(* A client sends messages and calls a listener. It reports both in        *)
(* traces, which wait in its memory and are sent to a trace topic in the   *)
(* background. The trace topic may refuse them, or never answer.           *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Operations: a send has a trace if a broker stored its message, and a *)
(*    call of the listener has one before it and one after it.             *)
(*  - A batch of traces is all that wait; the limits of its size only make *)
(*    more of them.                                                        *)
(*  - Order: traces contain their times, so a batch is a set.              *)
(*  - A late batch: a batch may be stored before its send fails, and what  *)
(*    is stored after that is the same to readers of the trace topic.      *)
(*  - Time: a send of traces may fail at any moment.                       *)
(*  - Brokers with tracing off, and messages of the trace topic itself,    *)
(*    have no traces, and so no state here.                                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Sends,       \* the sends, strings
    Calls,       \* the calls of the listener, strings
    WaitingMax,  \* the most traces that wait: 1024
    TopicAnswers \* whether a send of traces ends: with an answer of the trace topic, or by its time limit

ASSUME
    /\ Sends \cap Calls = {} /\ Sends \cup Calls # {}
    /\ WaitingMax \in Nat /\ TopicAnswers \in BOOLEAN

Operations == Sends \cup Calls
None == "none"

\* How an operation ends. A send is stored with SEND_OK, or with another status, or refused. A call consumes its message or fails.
EndsOf(o) == {"good", "bad"} \cup (IF o \in Sends THEN {"refused"} ELSE {})
Ends == {"good", "bad", "refused"}

Traces == [of : Operations, says : {"began", "good", "bad"}]

-----------------------------------------------------------------------------
(* State *)

VARIABLE phase    \* of the client
PhaseOK == phase \in {"running", "stopping", "stopped", "crashed"}

VARIABLE outcome  \* by operation: what the application has seen; "lost" if the process ended first
OutcomeOK == outcome \in [Operations -> {"new", "running", "lost"} \cup Ends]

VARIABLE result   \* history: by operation, the answer of the broker, or the result of the listener
ResultOK == result \in [Operations -> Ends \cup {None}]

VARIABLE waiting  \* the traces that wait
WaitingOK == waiting \subseteq Traces

VARIABLE batch    \* the traces in the message that is being sent
BatchOK == batch \subseteq Traces

VARIABLE topic    \* the traces in the trace topic
TopicOK == topic \subseteq Traces

VARIABLE sent     \* the traces whose send succeeded
SentOK == sent \subseteq Traces

VARIABLE dropped  \* the client's counter of traces that it did not send, or whose send failed
DroppedOK == dropped \in Nat

tracer == <<waiting, batch, sent, dropped>>
vars == <<phase, outcome, result, topic, tracer>>

TypeOK == PhaseOK /\ OutcomeOK /\ ResultOK /\ WaitingOK /\ BatchOK /\ TopicOK /\ SentOK /\ DroppedOK

Init ==
    /\ phase = "running"
    /\ outcome = [o \in Operations |-> "new"]
    /\ result = [o \in Operations |-> None]
    /\ waiting = {}
    /\ batch = {}
    /\ topic = {}
    /\ sent = {}
    /\ dropped = 0

-----------------------------------------------------------------------------
(* Operations *)

Trace(o, s) == [of |-> o, says |-> s]

HasRoom == phase = "running" /\ Cardinality(waiting) < WaitingMax

\* Keep a trace, or count it as dropped. This never waits.
Put(t) ==
    /\ waiting' = IF HasRoom THEN waiting \cup {t} ELSE waiting
    /\ dropped' = IF HasRoom THEN dropped ELSE dropped + 1

PutNothing == UNCHANGED <<waiting, dropped>>

Begin(o) ==
    /\ phase = "running"
    /\ outcome[o] = "new"
    /\ outcome' = [outcome EXCEPT ![o] = "running"]
    /\ IF o \in Calls THEN Put(Trace(o, "began")) ELSE PutNothing
    /\ UNCHANGED <<phase, result, batch, topic, sent>>

\* What the application sees of a result.
Seen(e) == e

\* The operation ends, also while the client stops or after that.
End(o, e) ==
    /\ outcome[o] = "running"
    /\ e \in EndsOf(o)
    /\ result' = [result EXCEPT ![o] = e]
    /\ outcome' = [outcome EXCEPT ![o] = Seen(e)]
    /\ IF e = "refused" THEN PutNothing ELSE Put(Trace(o, e))
    /\ UNCHANGED <<phase, batch, topic, sent>>

-----------------------------------------------------------------------------
(* Traces *)

\* While traces wait, the client runs or stops.
Take ==
    /\ batch = {} /\ waiting # {}
    /\ batch' = waiting
    /\ waiting' = {}
    /\ UNCHANGED <<phase, outcome, result, topic, sent, dropped>>

\* The trace topic stores a batch.
Store ==
    /\ ~(batch \subseteq topic)
    /\ topic' = topic \cup batch
    /\ UNCHANGED <<phase, outcome, result, tracer>>

\* The send of a batch ends: it succeeds, or it is refused, times out, or raises an error.
Settle(succeeds) ==
    /\ batch # {}
    /\ succeeds => batch \subseteq topic
    /\ sent' = IF succeeds THEN sent \cup batch ELSE sent
    /\ dropped' = IF succeeds THEN dropped ELSE dropped + Cardinality(batch)
    /\ batch' = {}
    /\ UNCHANGED <<phase, outcome, result, waiting, topic>>

-----------------------------------------------------------------------------
(* The end of the client *)

\* The client takes no more traces, and sends those that wait.
Stop ==
    /\ phase = "running"
    /\ phase' = "stopping"
    /\ UNCHANGED <<outcome, result, topic, tracer>>

\* Nothing waits, or the time limit is over. What is left is counted as dropped.
Stopped ==
    /\ phase = "stopping"
    /\ phase' = "stopped"
    /\ dropped' = dropped + Cardinality(waiting) + Cardinality(batch)
    /\ waiting' = {}
    /\ batch' = {}
    /\ UNCHANGED <<outcome, result, topic, sent>>

\* The process ends, with what was in its memory.
Crash ==
    /\ phase # "crashed"
    /\ phase' = "crashed"
    /\ outcome' = [o \in Operations |-> IF outcome[o] = "running" THEN "lost" ELSE outcome[o]]
    /\ waiting' = {}
    /\ batch' = {}
    /\ sent' = {}
    /\ dropped' = 0
    /\ UNCHANGED <<result, topic>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E o \in Operations : Begin(o) \/ \E e \in Ends : End(o, e)
    \/ Take \/ Store \/ \E succeeds \in BOOLEAN : Settle(succeeds)
    \/ Stop \/ Stopped \/ Crash

\* Brokers answer sends, and listeners return. The trace topic need not answer, unless TopicAnswers.
EndsFair == \A o \in Operations : WF_vars(\E e \in Ends : End(o, e))
TakesFair == WF_vars(Take)
SettlesFair == TopicAnswers => WF_vars(\E succeeds \in BOOLEAN : Settle(succeeds))

Fairness == EndsFair /\ TakesFair /\ SettlesFair

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* What the applications saw, as traces.
DueOf(o) ==
    (IF o \in Calls /\ outcome[o] # "new" THEN {Trace(o, "began")} ELSE {})
    \cup (IF outcome[o] \in {"good", "bad"} THEN {Trace(o, outcome[o])} ELSE {})
Due == UNION {DueOf(o) : o \in Operations}

\* TRACE-1: an operation has its own result, whatever happens to its trace
ResultUnchanged == \A o \in Operations : result[o] # None => outcome[o] = result[o]

\* TRACE-2: the traces that wait are bounded
TracesBounded == Cardinality(waiting) <= WaitingMax

\* TRACE-3: a trace states what the application saw, and an operation that did not happen has none
TraceTrue == waiting \cup batch \cup topic \subseteq Due

\* TRACE-4: each trace that was not sent is counted
DroppedCounted == phase # "crashed" => dropped = Cardinality(Due \ (waiting \cup batch \cup sent))

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ sent \subseteq topic
    /\ waiting \cap batch = {} /\ waiting \cap topic = {} /\ batch \cap sent = {}
    /\ phase \in {"stopped", "crashed"} => waiting = {} /\ batch = {}
    /\ phase = "crashed" => sent = {} /\ dropped = 0
    /\ \A o \in Calls : outcome[o] # "refused"
    /\ \A o \in Operations : result[o] \in EndsOf(o) \cup {None} /\ (result[o] = None <=> outcome[o] \notin Ends)

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

Moves == {<<"new", "running">>, <<"running", "lost">>} \cup {<<"running", e>> : e \in Ends}

\* One operation begins or ends; or the process ends, and all that run are lost.
OutcomesFollow ==
    [][outcome' # outcome =>
        /\ \A o \in Operations : outcome'[o] # outcome[o] => <<outcome[o], outcome'[o]>> \in Moves
        /\ IF phase' = "crashed" THEN \A o \in Operations : outcome'[o] = IF outcome[o] = "running" THEN "lost" ELSE outcome[o]
           ELSE \E o \in Operations :
               /\ outcome' = [outcome EXCEPT ![o] = outcome'[o]]
               /\ outcome'[o] = "running" => phase = "running"
               /\ outcome'[o] # "lost"
               /\ UNCHANGED <<phase, batch, topic, sent>>]_vars

\* A trace waits if there is room, and until a batch is sent, or the client ends.
WaitingFollows ==
    [][waiting' # waiting =>
        IF waiting \subseteq waiting' THEN outcome' # outcome /\ Cardinality(waiting') = Cardinality(waiting) + 1
        ELSE waiting' = {} /\ (phase' # phase \/ (batch = {} /\ batch' = waiting))]_vars

\* A trace is counted only if there is no room, its send failed, or the client stops.
CountedRightly ==
    [][dropped' > dropped =>
        \/ outcome' # outcome /\ dropped' = dropped + 1 /\ (phase # "running" \/ Cardinality(waiting) >= WaitingMax)
        \/ batch # {} /\ batch' = {} /\ waiting' = waiting
        \/ phase' = "stopped"]_vars

\* A batch remains until its send ends. A success requires that it is stored.
BatchFollows ==
    [][batch' # batch =>
        /\ UNCHANGED topic
        /\ batch = {} \/ batch' = {}
        /\ batch = {} => UNCHANGED <<phase, outcome, sent, dropped>> /\ phase \in {"running", "stopping"}
        /\ phase' = phase => UNCHANGED <<outcome, result>>]_vars

\* The trace topic grows by the whole batch.
TopicGrows == [][topic' # topic => topic' = topic \cup batch /\ UNCHANGED <<phase, outcome, result, tracer>>]_vars
SentGrows ==
    [][sent' # sent =>
        IF phase' = "crashed" THEN sent' = {} ELSE sent' = sent \cup batch /\ batch' = {} /\ batch \subseteq topic /\ UNCHANGED <<phase, dropped>>]_vars

PhaseMoves ==
    [][phase' # phase =>
        /\ <<phase, phase'>> \in {<<"running", "stopping">>, <<"stopping", "stopped">>}
            \cup {<<p, "crashed">> : p \in {"running", "stopping", "stopped"}}
        /\ UNCHANGED <<result, topic>>
        /\ phase' = "stopping" => UNCHANGED <<outcome, tracer>>
        /\ phase' = "stopped" => UNCHANGED <<outcome, sent>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive. No state of the traces is in the way of an operation.
NeverStuck ==
    /\ phase # "crashed" => ENABLED (Next /\ phase' = "crashed")
    /\ phase = "running" => ENABLED (Next /\ phase' = "stopping")
    /\ phase = "stopping" => ENABLED (Next /\ phase' = "stopped")
    /\ \A o \in Operations :
        /\ phase = "running" /\ outcome[o] = "new" => ENABLED (Next /\ outcome'[o] = "running")
        /\ outcome[o] = "running" => \A e \in EndsOf(o) : ENABLED (Next /\ outcome'[o] = e)
    /\ waiting # {} /\ batch = {} => ENABLED (Next /\ batch' = waiting)
    /\ batch # {} =>
        /\ ENABLED (Next /\ batch' = {} /\ dropped' = dropped + Cardinality(batch))
        /\ IF batch \subseteq topic THEN ENABLED (Next /\ sent' = sent \cup batch) ELSE ENABLED (Next /\ topic' = topic \cup batch)

-----------------------------------------------------------------------------
(* Liveness *)

\* TRACE-5: each operation ends, also if the trace topic never answers
NeverInTheWay == \A o \in Operations : outcome[o] = "running" ~> outcome[o] # "running"

\* TRACE-6: a trace that waits is in the end sent or counted, unless its process ends. This is with TopicAnswers.
TraceSettles == \A t \in Traces : t \in waiting \cup batch ~> t \notin waiting \cup batch

================================================================================
