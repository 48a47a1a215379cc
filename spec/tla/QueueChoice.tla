---------------------------- MODULE QueueChoice ----------------------------
(***************************************************************************)
(* The choice of the queue that a producer sends to: round robin over the  *)
(* writable queues of its route. A retry avoids the broker that just       *)
(* failed. With the latency fault strategy, a send avoids brokers that     *)
(* were slow or failed. This module is separate from Routing because it    *)
(* needs only a route.                                                     *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The route: any set of writable brokers, which may change between     *)
(*    sends; a send uses the route that it began with.                     *)
(*  - Messages: a send is modelled by its attempts and their results.      *)
(*  - Latency: an answer, or a missing answer, gives the penalty that the  *)
(*    latency table contains for it.                                       *)
(*  - Time: penalties are counted in ticks; a send ends within one tick.   *)
(*  - Threads: there is one, with its own counter; other threads may       *)
(*    change the shared penalty table at any time.                         *)
(*  - The counter wraps at a multiple of every list length, so it is       *)
(*    finite and the round robin stays regular.                            *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    BrokerCount,  \* the number of brokers
    QueueCount,   \* the number of writable queues of each broker
    AttemptsMax,  \* retryTimesWhenSendFailed plus one: 3
    Penalties,    \* the possible penalties for an answer, in ticks; 0 for a fast answer
    Isolation,    \* the penalty for a failed attempt, in ticks
    Strategies    \* the values of sendLatencyFaultEnable to explore

Order == SubSeq(<<"a", "b", "c", "d">>, 1, BrokerCount) \* as clients sort them

Brokers == {Order[i] : i \in 1..BrokerCount}

ASSUME /\ BrokerCount \in 1..4 /\ QueueCount \in Nat \ {0} /\ AttemptsMax \in Nat \ {0}
       /\ 0 \in Penalties /\ Penalties \subseteq Nat /\ Isolation \in Nat \ {0}
       /\ Strategies \subseteq BOOLEAN /\ Strategies # {}

Max(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n \* of a non-empty set

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

VARIABLE counter  \* the position of the round robin
CounterOK == counter \in 0..(Wrap - 1)

VARIABLE penalty  \* the latency fault table: ticks until a broker is available again
PenaltyOK == penalty \in [Brokers -> 0..Max(Penalties \cup {Isolation})]

VARIABLE tried    \* the brokers of the attempts of the current send; empty if there is none
TriedOK == Len(tried) <= AttemptsMax /\ \A i \in 1..Len(tried) : tried[i] \in route

VARIABLE waiting  \* an attempt is in progress
WaitingOK == waiting \in BOOLEAN /\ (waiting => tried # <<>>)

VARIABLE avoidTicks     \* history: the ticks for which each broker must still be avoided, by its latest answer or failure
AvoidTicksOK == avoidTicks \in [Brokers -> 0..Max(Penalties \cup {Isolation})]

vars == <<strategy, route, counter, penalty, tried, waiting, avoidTicks>>

TypeOK == StrategyOK /\ RouteOK /\ CounterOK /\ PenaltyOK /\ TriedOK /\ WaitingOK /\ AvoidTicksOK

Init ==
    /\ strategy \in Strategies
    /\ route = Brokers
    /\ counter \in 0..(Wrap - 1)
    /\ penalty = [b \in Brokers |-> 0]
    /\ tried = <<>>
    /\ waiting = FALSE
    /\ avoidTicks = [b \in Brokers |-> 0]

-----------------------------------------------------------------------------
(* A send *)

Last == tried[Len(tried)]

Available == {b \in route : penalty[b] = 0}

\* With the strategy on, only available brokers are eligible, if there are any.
Eligible == IF strategy /\ Available # {} THEN Available ELSE route

\* A retry uses another broker if possible.
Wanted == IF tried = <<>> \/ Eligible = {Last} THEN Eligible ELSE Eligible \ {Last}

\* The number of queues, from the position of the round robin, that are skipped before a queue of a wanted
\* broker.
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
    /\ UNCHANGED <<strategy, route, penalty, avoidTicks>>

\* Penalties are recorded only if the latency fault strategy is on.
Penalise(b, ticks) ==
    /\ penalty' = IF strategy THEN [penalty EXCEPT ![b] = ticks] ELSE penalty
    /\ avoidTicks' = IF strategy THEN [avoidTicks EXCEPT ![b] = ticks] ELSE avoidTicks

\* The answer ends the send, and its latency determines the penalty.
Answered(ticks) ==
    /\ waiting
    /\ Penalise(Last, ticks)
    /\ tried' = <<>>
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>

\* There is no answer, or the answer permits a retry. After the last attempt the send has failed.
Failed ==
    /\ waiting
    /\ Penalise(Last, Isolation)
    /\ tried' = IF Len(tried) = AttemptsMax THEN <<>> ELSE tried
    /\ waiting' = FALSE
    /\ UNCHANGED <<strategy, route, counter>>

-----------------------------------------------------------------------------
(* Events outside the send *)

\* An attempt of another thread has ended.
Elsewhere(b, ticks) ==
    /\ strategy
    /\ b \in route
    /\ penalty[b] # ticks
    /\ Penalise(b, ticks)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>

\* A poll returned a different route, which may be empty.
RouteChanges(brokers) ==
    /\ tried = <<>>
    /\ brokers # route
    /\ route' = brokers
    /\ UNCHANGED <<strategy, counter, penalty, tried, waiting, avoidTicks>>

Less(ticks) == [b \in Brokers |-> IF ticks[b] > 0 THEN ticks[b] - 1 ELSE 0]

Tick ==
    /\ tried = <<>>
    /\ \E b \in Brokers : penalty[b] > 0 \/ avoidTicks[b] > 0
    /\ penalty' = Less(penalty)
    /\ avoidTicks' = Less(avoidTicks)
    /\ UNCHANGED <<strategy, route, counter, tried, waiting>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Send == Attempt \/ Failed \/ \E ticks \in Penalties : Answered(ticks)

Surroundings ==
    \/ \E b \in Brokers, ticks \in Penalties \cup {Isolation} : Elsewhere(b, ticks)
    \/ \E brokers \in SUBSET Brokers : RouteChanges(brokers)
    \/ Tick

Next == Send \/ Surroundings

\* Every attempt ends, and a send in progress continues.
SendFairness == WF_vars(Failed \/ \E ticks \in Penalties : Answered(ticks)) /\ WF_vars(tried # <<>> /\ Attempt)

Spec == Init /\ [][Next]_vars /\ SendFairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Rested(b) == avoidTicks[b] > 0

\* The brokers that the strategy may choose: those that have no penalty, or the whole route if all have one.
Choice == IF strategy /\ \E b \in route : ~Rested(b) THEN {b \in route : ~Rested(b)} ELSE route

Chosen == tried'[Len(tried')]

\* ROUTE-5: a retry uses the last broker again only if no other broker is eligible
RetryAvoidsLastBroker ==
    [][waiting' /\ ~waiting /\ tried # <<>> /\ Chosen = Last => Choice = {Last}]_vars

\* ROUTE-6
FaultyBrokerRested ==
    [][waiting' /\ ~waiting /\ strategy /\ Rested(Chosen) => \A b \in route : Rested(b)]_vars

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ penalty = avoidTicks
    /\ ~strategy => \A b \in Brokers : penalty[b] = 0
    /\ Len(tried) = AttemptsMax => waiting

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* Attempts follow one another. Each begins after the previous one ended, and their number is limited.
AttemptsOneByOne ==
    [][tried' # tried /\ tried' # <<>> =>
        /\ ~waiting /\ waiting'
        /\ Len(tried) < AttemptsMax
        /\ Len(tried') = Len(tried) + 1
        /\ SubSeq(tried', 1, Len(tried)) = tried]_vars

\* If no broker is avoided, a send begins at the queue after the last one used.
RoundRobin ==
    [][waiting' /\ ~waiting /\ tried = <<>> /\ (\A b \in route : ~Rested(b)) =>
        /\ counter' = (counter + 1) % Wrap
        /\ Chosen = BrokerAt(route, counter % Size(route))]_vars

\* A queue is skipped only because its broker has a penalty or has just failed in this send.
PassedForAReason ==
    [][waiting' /\ ~waiting =>
        \A k \in 0..(((counter' + Wrap - counter - 1) % Wrap) - 1) :
            LET b == BrokerAt(route, (counter + k) % Size(route))
            IN  Rested(b) \/ (tried # <<>> /\ b = Last)]_vars

\* Only attempts advance the round robin.
CounterCountsAttempts == [][counter' # counter => waiting' /\ ~waiting]_vars

\* A send continues only after a failure, which is recorded in the table.
GoesOnAfterFailure ==
    [][waiting /\ ~waiting' /\ tried' # <<>> /\ strategy => avoidTicks'[Last] = Isolation]_vars

\* During a send, the table changes only at the end of an attempt, for one broker of the route at a time.
PenalisedByAttempts ==
    [][tried # <<>> /\ avoidTicks' # avoidTicks => \E b \in route : avoidTicks' = [avoidTicks EXCEPT ![b] = avoidTicks'[b]]]_vars

\* A penalty becomes shorter only by ticks, one at a time.
RestEndsByTicks ==
    [][tried = <<>> /\ waiting' = waiting /\ avoidTicks' # avoidTicks =>
        \/ \E b \in route : avoidTicks' = [avoidTicks EXCEPT ![b] = avoidTicks'[b]]
        \/ \A b \in Brokers : avoidTicks'[b] = avoidTicks[b] - 1 \/ (avoidTicks[b] = 0 /\ avoidTicks'[b] = 0)]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ IF waiting THEN
            /\ ENABLED (Send /\ ~waiting' /\ tried' = <<>>)
            /\ Len(tried) < AttemptsMax => ENABLED (Send /\ ~waiting' /\ tried' = tried)
            /\ strategy => \A ticks \in Penalties : ENABLED (Send /\ avoidTicks'[Last] = ticks)
       ELSE route # {} => ENABLED (Send /\ waiting')
    /\ strategy /\ tried # <<>> =>
        \A b \in route : ENABLED (Surroundings /\ avoidTicks'[b] # avoidTicks[b] /\ UNCHANGED tried)
    /\ tried = <<>> =>
        /\ \A i \in 1..BrokerCount : {Order[i]} # route => ENABLED (Surroundings /\ route' = {Order[i]})
        /\ route # {} => ENABLED (Surroundings /\ route' = {})
        /\ (\E b \in Brokers : avoidTicks[b] > 0) => ENABLED <<Tick>>_avoidTicks

\* Not in the catalogue: no attempt returns to a broker of the same send while there is an untried broker.
UntriedFirst ==
    \A i, j \in 1..Len(tried) :
        i < j /\ tried[i] = tried[j] => \A b \in route : \E k \in 1..(j - 1) : tried[k] = b

-----------------------------------------------------------------------------
(* Liveness *)

SendEnds == tried # <<>> ~> tried = <<>>

=============================================================================
