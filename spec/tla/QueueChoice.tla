---------------------------- MODULE QueueChoice ----------------------------
(***************************************************************************)
(* Which queue a producer sends to: round robin over the writable queues   *)
(* of its route, a retry away from the broker that just failed, and with   *)
(* the latency fault strategy away from brokers that were slow or failed.  *)
(* A module beside Routing, because all it needs of that is a route.       *)
(*                                                                         *)
(* Abstracted away, one sentence each:                                     *)
(*  - The route: any set of writable brokers, another one between sends; a *)
(*    send works on the route that it began with.                          *)
(*  - Messages: what matters of a send is its attempts and their ends.     *)
(*  - Latency: an answer, or its absence, is the penalty that the table of *)
(*    latencies gives for it.                                              *)
(*  - Time: penalties are counted in ticks; a send ends within one.        *)
(*  - Threads: one is shown, with a counter of its own; others change the  *)
(*    table of penalties at any time, which all of them share.             *)
(*  - The counter wraps at a multiple of every list's length, so that it   *)
(*    is finite and round robin never stumbles.                            *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    BrokerCount,  \* how many brokers there are
    QueueCount,   \* how many writable queues each of them has
    AttemptsMax,  \* retryTimesWhenSendFailed and one: 3
    Penalties,    \* what answers may bring, in ticks; 0 for those in good time
    Isolation,    \* what a failed attempt brings, in ticks
    Strategies    \* the values of sendLatencyFaultEnable to explore

Order == SubSeq(<<"a", "b", "c", "d">>, 1, BrokerCount) \* as clients sort them

Brokers == {Order[i] : i \in 1..BrokerCount}

ASSUME /\ BrokerCount \in 1..4 /\ QueueCount \in Nat \ {0} /\ AttemptsMax \in Nat \ {0}
       /\ 0 \in Penalties /\ Penalties \subseteq Nat /\ Isolation \in Nat \ {0}
       /\ Strategies \subseteq BOOLEAN /\ Strategies # {}

Max(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n \* of a set that is not empty

-----------------------------------------------------------------------------
(* The list of queues *)

Sorted(brokers) == SelectSeq(Order, LAMBDA b : b \in brokers)

Size(brokers) == Cardinality(brokers) * QueueCount

\* The broker of the queue at a position of the list, which counts from 0.
BrokerAt(brokers, position) == Sorted(brokers)[(position \div QueueCount) + 1]

Wrap == QueueCount * (IF BrokerCount = 4 THEN 12 ELSE IF BrokerCount = 3 THEN 6 ELSE BrokerCount)

-----------------------------------------------------------------------------
(* State *)

VARIABLE strategy \* sendLatencyFaultEnable; never changes
StrategyOK == strategy \in Strategies

VARIABLE route    \* the brokers whose queues are writable
RouteOK == route \subseteq Brokers

VARIABLE counter  \* where the round robin is
CounterOK == counter \in 0..(Wrap - 1)

VARIABLE penalty  \* the latency fault table: ticks until a broker is available again
PenaltyOK == penalty \in [Brokers -> 0..Max(Penalties \cup {Isolation})]

VARIABLE tried    \* the brokers of the attempts of the send under way; none is, when it is empty
TriedOK == Len(tried) <= AttemptsMax /\ \A i \in 1..Len(tried) : tried[i] \in route

VARIABLE waiting  \* an attempt has not ended yet
WaitingOK == waiting \in BOOLEAN /\ (waiting => tried # <<>>)

VARIABLE owed     \* history: ticks that a broker is to be rested yet, by its latest answer or failure
OwedOK == owed \in [Brokers -> 0..Max(Penalties \cup {Isolation})]

vars == <<strategy, route, counter, penalty, tried, waiting, owed>>

TypeOK == StrategyOK /\ RouteOK /\ CounterOK /\ PenaltyOK /\ TriedOK /\ WaitingOK /\ OwedOK

Init ==
    /\ strategy \in Strategies
    /\ route = Brokers
    /\ counter \in 0..(Wrap - 1)
    /\ penalty = [b \in Brokers |-> 0]
    /\ tried = <<>>
    /\ waiting = FALSE
    /\ owed = [b \in Brokers |-> 0]

-----------------------------------------------------------------------------
(* A send *)

Last == tried[Len(tried)]

Available == {b \in route : penalty[b] = 0}

\* With the strategy on and somebody available, only who is.
Eligible == IF strategy /\ Available # {} THEN Available ELSE route

\* A retry goes elsewhere if it can.
Wanted == IF tried = <<>> \/ Eligible = {Last} THEN Eligible ELSE Eligible \ {Last}

\* How many queues, from where the round robin is, are passed over before one of a wanted broker.
Passed(wanted) ==
    CHOOSE k \in 0..(Size(route) - 1) :
        /\ BrokerAt(route, (counter + k) % Size(route)) \in wanted
        /\ \A j \in 0..(k - 1) : BrokerAt(route, (counter + j) % Size(route)) \notin wanted

\* The first attempt, or the next one after a failure.
Attempt ==
    /\ ~waiting
    /\ Len(tried) < AttemptsMax
    /\ route # {}
    /\ tried' = Append(tried, BrokerAt(route, (counter + Passed(Wanted)) % Size(route)))
    /\ counter' = (counter + Passed(Wanted) + 1) % Wrap
    /\ waiting' = TRUE
    /\ UNCHANGED <<strategy, route, penalty, owed>>

\* The table is kept only if the strategy is on.
Penalise(b, ticks) ==
    /\ penalty' = IF strategy THEN [penalty EXCEPT ![b] = ticks] ELSE penalty
    /\ owed' = IF strategy THEN [owed EXCEPT ![b] = ticks] ELSE owed

\* The answer ends the send; how long it took counts.
Answered(ticks) ==
    /\ waiting
    /\ Penalise(Last, ticks)
    /\ tried' = <<>>
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>

\* No answer, or one that is retried; after the last attempt the send has failed.
Failed ==
    /\ waiting
    /\ Penalise(Last, Isolation)
    /\ tried' = IF Len(tried) = AttemptsMax THEN <<>> ELSE tried
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>

-----------------------------------------------------------------------------
(* What goes on around it *)

\* An attempt of another thread has ended.
Elsewhere(b, ticks) ==
    /\ strategy
    /\ b \in route
    /\ penalty[b] # ticks
    /\ Penalise(b, ticks)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>

\* The route was polled and is another one; it may be empty.
RouteChanges(brokers) ==
    /\ tried = <<>>
    /\ brokers # route
    /\ route' = brokers
    /\ UNCHANGED <<strategy, counter, penalty, tried, waiting, owed>>

Less(ticks) == [b \in Brokers |-> IF ticks[b] > 0 THEN ticks[b] - 1 ELSE 0]

Tick ==
    /\ tried = <<>>
    /\ \E b \in Brokers : penalty[b] > 0 \/ owed[b] > 0
    /\ penalty' = Less(penalty)
    /\ owed' = Less(owed)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>

-----------------------------------------------------------------------------
(* The whole *)

Send == Attempt \/ Failed \/ \E ticks \in Penalties : Answered(ticks)

Surroundings ==
    \/ \E b \in Brokers, ticks \in Penalties \cup {Isolation} : Elsewhere(b, ticks)
    \/ \E brokers \in SUBSET Brokers : RouteChanges(brokers)
    \/ Tick

Next == Send \/ Surroundings

\* Every attempt ends, and a send under way goes on.
SendFairness == WF_vars(Failed \/ \E ticks \in Penalties : Answered(ticks)) /\ WF_vars(tried # <<>> /\ Attempt)

Spec == Init /\ [][Next]_vars /\ SendFairness

-----------------------------------------------------------------------------
(* Safety. Names are those of spec/invariants.toml. *)

Rested(b) == owed[b] > 0

\* Who may be chosen by the strategy: if somebody is not rested, only such.
Choice == IF strategy /\ \E b \in route : ~Rested(b) THEN {b \in route : ~Rested(b)} ELSE route

Chosen == tried'[Len(tried')]

\* ROUTE-5: there is a choice, when more than the last broker may be chosen
RetryAvoidsLastBroker ==
    [][waiting' /\ ~waiting /\ tried # <<>> /\ Chosen = Last => Choice = {Last}]_vars

\* ROUTE-6
FaultyBrokerRested ==
    [][waiting' /\ ~waiting /\ strategy /\ Rested(Chosen) => \A b \in route : Rested(b)]_vars

\* Not promises to anybody, but what the variables mean to one another.
Coherent ==
    /\ penalty = owed
    /\ ~strategy => \A b \in Brokers : penalty[b] = 0
    /\ Len(tried) = AttemptsMax => waiting

(* Consistency: what a step may do, so that a wrong step shows where it is made. *)

\* Attempts are made one after another, each when the one before has ended, and not more than a send may have.
AttemptsOneByOne ==
    [][tried' # tried /\ tried' # <<>> =>
        /\ ~waiting /\ waiting'
        /\ Len(tried) < AttemptsMax
        /\ Len(tried') = Len(tried) + 1
        /\ SubSeq(tried', 1, Len(tried)) = tried]_vars

\* With nobody to avoid, a send begins at the queue after the last one that was sent to.
RoundRobin ==
    [][waiting' /\ ~waiting /\ tried = <<>> /\ (\A b \in route : ~Rested(b)) =>
        /\ counter' = (counter + 1) % Wrap
        /\ Chosen = BrokerAt(route, counter % Size(route))]_vars

\* A queue is passed over for its broker: who is rested, or has just failed this send.
PassedForAReason ==
    [][waiting' /\ ~waiting =>
        \A k \in 0..(((counter' + Wrap - counter - 1) % Wrap) - 1) :
            LET b == BrokerAt(route, (counter + k) % Size(route))
            IN  Rested(b) \/ (tried # <<>> /\ b = Last)]_vars

\* The round robin goes on by attempts alone.
CounterCountsAttempts == [][counter' # counter => waiting' /\ ~waiting]_vars

\* A send goes on after a failure alone, which the table tells.
GoesOnAfterFailure ==
    [][waiting /\ ~waiting' /\ tried' # <<>> /\ strategy => owed'[Last] = Isolation]_vars

\* While a send is under way, the table changes by ends of attempts: one broker of the route a time.
PenalisedByAttempts ==
    [][tried # <<>> /\ owed' # owed => \E b \in route : owed' = [owed EXCEPT ![b] = owed'[b]]]_vars

\* Whoever is rested gets nearer to its end by ticks, one at a time.
RestEndsByTicks ==
    [][tried = <<>> /\ waiting' = waiting /\ owed' # owed =>
        \/ \E b \in route : owed' = [owed EXCEPT ![b] = owed'[b]]
        \/ \A b \in Brokers : owed'[b] = owed[b] - 1 \/ (owed[b] = 0 /\ owed'[b] = 0)]_vars

\* What may happen can happen: nothing is kept only because this module forbids what would break it.
NeverStuck ==
    /\ IF waiting THEN
            /\ ENABLED (Send /\ ~waiting' /\ tried' = <<>>)
            /\ Len(tried) < AttemptsMax => ENABLED (Send /\ ~waiting' /\ tried' = tried)
            /\ strategy => \A ticks \in Penalties : ENABLED (Send /\ owed'[Last] = ticks)
       ELSE route # {} => ENABLED (Send /\ waiting')
    /\ strategy /\ tried # <<>> =>
        \A b \in route : ENABLED (Surroundings /\ owed'[b] # owed[b] /\ UNCHANGED tried)
    /\ tried = <<>> =>
        /\ \A i \in 1..BrokerCount : {Order[i]} # route => ENABLED (Surroundings /\ route' = {Order[i]})
        /\ route # {} => ENABLED (Surroundings /\ route' = {})
        /\ (\E b \in Brokers : owed[b] > 0) => ENABLED <<Tick>>_owed

\* Not a promise of the catalogue: no attempt goes back to a broker of the same send while there is an untried one.
UntriedFirst ==
    \A i, j \in 1..Len(tried) :
        i < j /\ tried[i] = tried[j] => \A b \in route : \E k \in 1..(j - 1) : tried[k] = b

-----------------------------------------------------------------------------
(* Liveness *)

SendEnds == tried # <<>> ~> tried = <<>>

=============================================================================
