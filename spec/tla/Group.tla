--------------------------------- MODULE Group ---------------------------------
(***************************************************************************)
(* A consumer group reads the queues of Delivery. Queues are assigned to   *)
(* members and move between them. A member starts at the offset that the   *)
(* broker stores, and may crash before its own offset is stored. The       *)
(* module defines which messages may be delivered twice, and why.          *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The broker: its queues are those of Delivery, with all its faults.   *)
(*  - Strategies: a queue may be assigned to any member at any time.       *)
(*  - Membership: a member that leaves permanently is one that crashes and *)
(*    gets no queue.                                                       *)
(*  - The listener: a delivered message is also consumed; a message that   *)
(*    fails and is sent back is another message, of the retry topic.       *)
(*  - Orderly consumption: the broker has no lock here, so two members may *)
(*    read one queue while it moves.                                       *)
(*  - Resets: all members receive a reset at once.                         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,  \* the messages that producers may send, strings
    Queues,    \* the queues of one topic, strings
    Consumers  \* the members of the group, strings

VARIABLES answer, sends, queue, seen, committed, promise, serving \* as in Delivery

Promise == INSTANCE Delivery

ASSUME Consumers # {}

VARIABLE assigned \* the member that each queue belongs to; the other members may not know yet
AssignedOK == assigned \in [Queues -> Consumers]

VARIABLE position \* by member and queue: the number of messages before its next one, or Idle
Idle == -1
PositionOK == position \in [Consumers -> [Queues -> Nat \cup {Idle}]]

VARIABLE due     \* history: the number of justified deliveries of each message of a queue that are still to come
DueOK == due \in [Queues -> Seq(Int)] /\ \A q \in Queues : Len(due[q]) = Len(queue[q])

broker == <<answer, sends, queue, committed, promise, serving>>
members == <<assigned, position, due>>
vars == <<broker, seen, members>>

TypeOK == Promise!TypeOK /\ AssignedOK /\ PositionOK /\ DueOK

Init ==
    /\ Promise!Init
    /\ assigned \in [Queues -> Consumers]
    /\ position = [c \in Consumers |-> [q \in Queues |-> Idle]]
    /\ due = [q \in Queues |-> <<>>]

-----------------------------------------------------------------------------
(* Deliveries that are due: justified and still to come *)

Max(a, b) == IF a < b THEN b ELSE a

\* One delivery for each message that is stored.
MakeDue(queues) ==
    due' = [q \in Queues |-> [i \in 1..Len(queues[q]) |-> IF i <= Len(due[q]) THEN due[q][i] ELSE 1]]

\* A cause for repetition: the messages from this offset on may be delivered once more.
Again(q, offset) == [due EXCEPT ![q] = [i \in 1..Len(@) |-> IF i > offset THEN Max(@[i], 1) ELSE @[i]]]

-----------------------------------------------------------------------------
(* Producers and broker, as in Delivery *)

Send(m) == Promise!Send(m) /\ UNCHANGED members
Retry(m) == Promise!Retry(m) /\ UNCHANGED members
Acknowledge(m) == Promise!Acknowledge(m) /\ UNCHANGED members
Fail(m) == Promise!Fail(m) /\ UNCHANGED members

Store(longer) == Promise!Store(longer) /\ MakeDue(longer) /\ UNCHANGED <<assigned, position>>

Fault(answers, kept, offsets, stands, serves) ==
    /\ Promise!Fault(answers, kept, offsets, stands, serves)
    /\ MakeDue(kept)
    /\ UNCHANGED <<assigned, position>>

Restart == Promise!Restart /\ UNCHANGED members

-----------------------------------------------------------------------------
(* The life of an assignment *)

Reads(c, q) == position[c][q] # Idle

\* The members of the group or the queues changed. The previous owner of the queue discovers it later.
Rebalance(q, c) ==
    /\ assigned[q] # c
    /\ assigned' = [assigned EXCEPT ![q] = c]
    /\ due' = IF Reads(c, q) THEN Again(q, position[c][q]) ELSE due
    /\ UNCHANGED <<broker, seen, position>>

\* The start position of a member that has just received the queue.
StartOffset(q) == committed[q]

Start(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ position' = [position EXCEPT ![c][q] = StartOffset(q)]
    /\ due' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>

\* A delivery beyond the end of `seen` leaves a gap.
WithDelivery(sequence, i, m) ==
    [k \in 1..Max(Len(sequence), i) |->
        IF k = i THEN m ELSE IF k <= Len(sequence) THEN sequence[k] ELSE Promise!Passed]

\* A member may still read a queue that no longer belongs to it. This delivery is additional: the new owner
\* reads the message too.
Deliver(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] < Len(queue[q])
    /\ LET i == position[c][q] + 1
       IN  /\ seen' = [seen EXCEPT ![q] = WithDelivery(@, i, queue[q][i])]
           /\ position' = [position EXCEPT ![c][q] = i]
           /\ due' = IF assigned[q] = c THEN [due EXCEPT ![q][i] = @ - 1] ELSE due
    /\ UNCHANGED <<broker, assigned>>

\* The broker accepts an offset that is ahead of its own, from any member that reads the queue.
CommitOffset(c, q) ==
    /\ serving
    /\ Reads(c, q) /\ position[c][q] > committed[q]
    /\ committed' = [committed EXCEPT ![q] = position[c][q]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>

\* A member discovers that the queue has moved, and stops reading it.
Release(c, q) ==
    /\ assigned[q] # c /\ Reads(c, q)
    /\ position' = [position EXCEPT ![c][q] = Idle]
    /\ UNCHANGED <<broker, seen, assigned, due>>

\* A crash loses everything that the member did not commit to the broker.
ConsumerCrash(c) ==
    /\ \E q \in Queues : Reads(c, q)
    /\ position' = [position EXCEPT ![c] = [q \in Queues |-> Idle]]
    /\ UNCHANGED <<broker, seen, assigned, due>>

-----------------------------------------------------------------------------
(* Offsets that go back *)

\* The group moves back, and its offset with it. No member remains beyond this offset.
GoBack(q, offset) ==
    /\ serving
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ position' = [c \in Consumers |-> [position[c] EXCEPT ![q] = IF @ > offset THEN offset ELSE @]]
    /\ seen' = [seen EXCEPT ![q] = Promise!Prefix(@, offset)]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, assigned>>

\* An operator moves the group back.
Reset(q, offset) ==
    /\ offset < committed[q]
    /\ GoBack(q, offset)
    /\ due' = Again(q, offset)

\* A member requests an offset beyond the end of a queue that lost its end, and receives PULL_OFFSET_MOVED.
CorrectOffset(q) ==
    /\ \E c \in Consumers : position[c][q] > Len(queue[q])
    /\ GoBack(q, Len(queue[q]))
    /\ UNCHANGED due

-----------------------------------------------------------------------------
(* Next and Spec *)

Consume(c, q) == Start(c, q) \/ Deliver(c, q) \/ CommitOffset(c, q) \/ Release(c, q) \/ Rebalance(q, c)

\* Store and Fault allow any next values that fulfil them, as in Delivery.
Next ==
    \/ \E m \in Messages : Send(m) \/ Retry(m) \/ Acknowledge(m) \/ Fail(m)
    \/ Store(queue')
    \/ \E c \in Consumers, q \in Queues : Consume(c, q)
    \/ \E c \in Consumers : ConsumerCrash(c)
    \/ \E q \in Queues : CorrectOffset(q) \/ \E offset \in 0..Len(seen[q]) : Reset(q, offset)
    \/ Fault(answer', queue', committed', promise', serving')
    \/ Restart

\* A broker restarts. A member that owns a queue starts, receives messages and commits, although queues move
\* and members and brokers crash repeatedly (strong fairness). The group is moved back only finitely often.
\* Each subscript is what the action changes in every step; TLC compares `vars` much slower.
RestartFairness == WF_serving(Restart)
StartFairness == \A c \in Consumers, q \in Queues : SF_position(Start(c, q))
DeliverFairness == \A c \in Consumers, q \in Queues : SF_position(Deliver(c, q))
CommitFairness == \A c \in Consumers, q \in Queues : SF_committed(CommitOffset(c, q))
OffsetsSettle == <>[][\A q \in Queues : committed'[q] >= committed[q]]_vars

Fairness == RestartFairness /\ StartFairness /\ DeliverFairness /\ CommitFairness /\ OffsetsSettle

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* DELIV-1
NoAckedLost == Promise!NoAckedLost

\* DELIV-2
NoPhantom == Promise!NoPhantom

\* DELIV-3: no delivery without a cause, and no copy without a send
DuplicatesExplained ==
    /\ Promise!DuplicatesExplained
    /\ \A q \in Queues : \A i \in 1..Len(due[q]) : due[q][i] >= 0

\* DELIV-4
QueueOrder == Promise!QueueOrder

\* DELIV-5: while a broker serves, the offset only decreases if the group itself moves back. UNCHANGED comes first,
\* here and below, only because it takes TLC less time.
OffsetMonotone ==
    [][UNCHANGED committed \/ \A q \in Queues : committed'[q] < committed[q] => ~serving' \/ Len(seen'[q]) <= committed'[q]]_vars

\* Every step of the group is a step that Delivery allows. Many steps change nothing of Delivery.
RefinesDelivery == Promise!Init /\ [][UNCHANGED <<broker, seen>> \/ Promise!Next]_Promise!vars

(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is made. *)

\* Positions and committed offsets do not exceed the messages that were delivered to the group.
ReadWasSeen ==
    \A q \in Queues :
        /\ committed[q] <= Len(seen[q])
        /\ \A c \in Consumers : position[c][q] <= Len(seen[q])

\* Every message from the owner's position on is still to be delivered to it.
DueToReader ==
    \A q \in Queues :
        position[assigned[q]][q] # Idle =>
            \A i \in 1..Len(due[q]) : i > position[assigned[q]][q] => due[q][i] > 0

\* A delivery becomes due only for one of three causes: the queue moves, its owner starts, or the group's
\* offset is moved back. The message lies after the owner's position, or after its start position.
DueForACause ==
    [][UNCHANGED due \/ \A q \in Queues : \A i \in 1..Len(due[q]) :
        i <= Len(due'[q]) /\ due'[q][i] > due[q][i] =>
            /\ due'[q][i] = 1
            /\ \/ assigned'[q] # assigned[q]
               \/ position[assigned[q]][q] = Idle /\ position'[assigned[q]][q] # Idle
               \/ serving' /\ committed'[q] < committed[q]
            /\ i > IF position'[assigned'[q]][q] = Idle THEN committed'[q] ELSE position'[assigned'[q]][q]]_vars

\* A delivery to the owner of the queue was due. No other due delivery is dropped.
DeliveredWhenDue ==
    [][UNCHANGED <<position, due>> \/ \A q \in Queues : \A i \in 1..Len(due[q]) :
        i <= Len(due'[q]) =>
            (due'[q][i] < due[q][i] <=> position[assigned[q]][q] = i - 1 /\ position'[assigned[q]][q] = i)]_vars

\* While the broker does not serve, members only stop.
SilentUntilRestarted ==
    [][~serving =>
        /\ seen' = seen
        /\ \A c \in Consumers, q \in Queues : position'[c][q] \in {position[c][q], Idle}]_vars

\* A member starts at the committed offset of a queue that it owns, advances with each delivery, and moves
\* back with the group.
ReadersMove ==
    [][UNCHANGED position \/ \A c \in Consumers, q \in Queues :
        position'[c][q] \notin {position[c][q], Idle} =>
            \/ position[c][q] = Idle /\ assigned[q] = c /\ position'[c][q] = committed[q]
            \/ position'[c][q] = position[c][q] + 1 /\ seen'[q][position'[c][q]] = queue[q][position'[c][q]]
            \/ position'[c][q] < position[c][q] /\ position'[c][q] = Len(seen'[q])]_vars

\* A member stops reading when it has lost the queue, or when it crashes; after a crash it reads no queue.
ReadersStop ==
    [][UNCHANGED position \/ \A c \in Consumers, q \in Queues :
        position'[c][q] = Idle /\ position[c][q] # Idle =>
            assigned[q] # c \/ \A r \in Queues : position'[c][r] = Idle]_vars

\* The group is moved back by a reset, or because a member is beyond the end.
GoneBackForAReason ==
    [][UNCHANGED seen \/ \A q \in Queues :
        Len(seen'[q]) < Len(seen[q]) =>
            /\ committed'[q] = Len(seen'[q])
            /\ \/ committed'[q] < committed[q] /\ \A i \in 1..Len(due'[q]) : i > committed'[q] => due'[q][i] > 0
               \/ \E c \in Consumers : position[c][q] > Len(queue[q])]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A q \in Queues :
        /\ \A c \in Consumers :
            /\ assigned[q] # c => ENABLED <<Consume(c, q)>>_assigned
            /\ assigned[q] # c /\ position[c][q] # Idle => ENABLED <<Release(c, q)>>_position
            /\ serving =>
                /\ assigned[q] = c /\ position[c][q] = Idle => ENABLED <<Start(c, q)>>_position
                /\ position[c][q] \in 0..(Len(queue[q]) - 1) => ENABLED <<Deliver(c, q)>>_position
                /\ position[c][q] > committed[q] => ENABLED <<CommitOffset(c, q)>>_committed
                /\ position[c][q] > Len(queue[q]) => ENABLED <<CorrectOffset(q)>>_position
        /\ serving => \A n \in 0..(committed[q] - 1) : ENABLED <<Reset(q, n)>>_committed
    /\ \A c \in Consumers : (\E q \in Queues : position[c][q] # Idle) => ENABLED <<ConsumerCrash(c)>>_position

-----------------------------------------------------------------------------
(* Liveness *)

\* DELIV-12
AckedDelivered == Promise!AckedDelivered

=============================================================================
