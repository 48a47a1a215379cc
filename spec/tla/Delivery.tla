------------------------------- MODULE Delivery -------------------------------
(***************************************************************************)
(* The delivery guarantee as a user sees it. A message that was answered   *)
(* SEND_OK is kept, and it is delivered to the group in the order of its   *)
(* queue. Flush, Replication and Election are ways to keep these queues.   *)
(* Group is a way to read them. Each of these modules refines this one.    *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Brokers: the location of a queue and its number of copies on disk    *)
(*    are not visible.                                                     *)
(*  - Statuses: an answer is either good (acked) or ambiguous (unknown),   *)
(*    whatever status the protocol uses.                                   *)
(*  - The group: one subscriber; Group models its members.                 *)
(*  - Repetitions: a repeated delivery of an offset changes nothing here   *)
(*    unless the message at that offset changed; Group says which messages *)
(*    may repeat.                                                          *)
(*  - Deliberate skipping: a reset moves the offset back, never forward.   *)
(*  - Expiry: a fault may remove the end of a queue, never its beginning.  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,  \* the messages that producers may send, strings
    Queues     \* the queues of one topic, strings

Passed == "passed" \* marks an offset that the group passed without a delivery

ASSUME Queues # {} /\ Passed \notin Messages

Prefix(sequence, length) == SubSeq(sequence, 1, length)

Range(sequence) == {sequence[i] : i \in DOMAIN sequence}

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

-----------------------------------------------------------------------------
(* State *)

VARIABLE answer    \* the status of each message, as its producer knows it
Answers == {"unsent", "waiting", "acked", "unknown"}
AnswerOK == answer \in [Messages -> Answers]

VARIABLE sends     \* the number of times that the producer sent each message
SendsOK == sends \in [Messages -> Nat]

VARIABLE queue     \* the messages stored in each queue, in order
QueueOK == queue \in [Queues -> Seq(Messages)]

VARIABLE seen      \* by queue: the message last delivered to the group at each offset
SeenOK == seen \in [Queues -> Seq(Messages \cup {Passed})]

VARIABLE committed \* the group's offset in each queue, as stored by the broker
CommittedOK == committed \in [Queues -> Nat]

VARIABLE promise   \* TRUE until a fault exceeds the faults that the configuration tolerates
PromiseOK == promise \in BOOLEAN

VARIABLE serving   \* FALSE from a fault that clears the broker's memory until the restart
ServingOK == serving \in BOOLEAN

vars == <<answer, sends, queue, seen, committed, promise, serving>>

TypeOK == AnswerOK /\ SendsOK /\ QueueOK /\ SeenOK /\ CommittedOK /\ PromiseOK /\ ServingOK

Init ==
    /\ answer = [m \in Messages |-> "unsent"]
    /\ sends = [m \in Messages |-> 0]
    /\ queue = [q \in Queues |-> <<>>]
    /\ seen = [q \in Queues |-> <<>>]
    /\ committed = [q \in Queues |-> 0]
    /\ promise = TRUE
    /\ serving = TRUE

-----------------------------------------------------------------------------
(* Producers and storage *)

\* The number of places in these queues where the message is stored.
Copies(m, queues) == Cardinality({place \in UNION {{q} \X DOMAIN queues[q] : q \in Queues} : queues[place[1]][place[2]] = m})

Stored(m, queues) == \E q \in Queues : \E i \in 1..Len(queues[q]) : queues[q][i] = m

SendAgain(m) ==
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ sends' = [sends EXCEPT ![m] = @ + 1]
    /\ UNCHANGED <<queue, seen, committed, promise, serving>>

Send(m) == answer[m] = "unsent" /\ SendAgain(m)

\* The producer sends again a message whose result is unknown. The first copy may be stored already, or be
\* stored later.
Retry(m) == answer[m] = "unknown" /\ SendAgain(m)

\* Queues grow at their ends, by messages that were sent (possibly in this same step). No message is stored
\* more often than it was sent.
Store(longer) ==
    /\ serving
    /\ UNCHANGED <<seen, committed, promise, serving>>
    /\ \A q \in Queues : IsPrefix(queue[q], longer[q])
    /\ queue' = longer
    /\ LET fresh == {m \in Messages : answer[m] = "unsent" /\ Stored(m, longer)}
       IN  /\ answer' = [m \in Messages |-> IF m \in fresh THEN "waiting" ELSE answer[m]]
           /\ sends' = [m \in Messages |-> IF m \in fresh THEN 1 ELSE sends[m]]
    /\ \A m \in Messages : Copies(m, longer) <= sends'[m]

Acknowledge(m) ==
    /\ serving
    /\ answer[m] = "waiting"
    /\ Stored(m, queue)
    /\ answer' = [answer EXCEPT ![m] = "acked"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>

\* The answer is missing or ambiguous. The message may be stored, now or later.
Fail(m) ==
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "unknown"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>

-----------------------------------------------------------------------------
(* The group *)

\* Delivers the i-th message of the queue to the group: the next unseen message, or an earlier one again.
Deliver(q, i) ==
    /\ serving
    /\ i <= Len(queue[q]) /\ i <= Len(seen[q]) + 1
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, i - 1) \o <<queue[q][i]>> \o SubSeq(@, i + 1, Len(@))]
    /\ UNCHANGED <<answer, sends, queue, committed, promise, serving>>

\* The group commits an offset up to which messages were delivered, never beyond.
CommitOffset(q, offset) ==
    /\ serving
    /\ committed[q] < offset /\ offset <= Len(seen[q])
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>

\* The group moves back to an offset, and its committed offset moves with it.
GoBack(q, offset) ==
    /\ serving
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, offset)]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, promise, serving>>

\* An operator moves the group back.
Reset(q, offset) == offset < committed[q] /\ GoBack(q, offset)

\* The queue lost its end and the group is beyond the new end (PULL_OFFSET_MOVED), so the group moves back.
CorrectOffset(q, offset) ==
    /\ ~promise
    /\ offset <= Len(queue[q]) /\ offset < Len(seen[q])
    /\ GoBack(q, offset)

-----------------------------------------------------------------------------
(* Faults *)

\* No acknowledged message and no delivered message is missing in these queues.
Keeps(queues) ==
    /\ \A m \in Messages : answer[m] = "acked" => Stored(m, queues)
    /\ \A q \in Queues : Len(seen[q]) <= Len(queues[q])

\* When the broker crashes, waiting producers lose their answer, queues may lose their end, and offsets return
\* to their state on disk. While `promise` holds, no acknowledged or delivered message is lost. A fault beyond
\* the guarantee ends the promise.
Fault(answers, kept, offsets, stands, serves) ==
    /\ serves => serving /\ offsets = committed
    /\ UNCHANGED <<sends, seen>>
    /\ serving' = serves
    /\ stands => promise /\ Keeps(kept)
    /\ promise' = stands
    /\ \A m \in Messages : answers[m] = answer[m] \/ (answer[m] = "waiting" /\ answers[m] = "unknown")
    /\ answer' = answers
    /\ \A q \in Queues : IsPrefix(kept[q], queue[q])
    /\ queue' = kept
    /\ \A q \in Queues : offsets[q] <= committed[q]
    /\ committed' = offsets

(* The parts of a fault, one at a time *)

Lose(q, length) ==
    /\ length < Len(queue[q])
    /\ Fault(answer, [queue EXCEPT ![q] = Prefix(@, length)], committed, promise, serving)

Crash ==
    /\ serving
    /\ Fault(answer, queue, committed, promise, FALSE)

RollBack(q, offset) ==
    /\ ~serving
    /\ offset < committed[q]
    /\ Fault(answer, queue, [committed EXCEPT ![q] = offset], promise, FALSE)

Withdraw ==
    /\ promise
    /\ Fault(answer, queue, committed, FALSE, serving)

(* The end of a fault *)

Restart ==
    /\ ~serving
    /\ serving' = TRUE
    /\ UNCHANGED <<answer, sends, queue, seen, committed, promise>>

-----------------------------------------------------------------------------
(* Next and Spec *)

\* Store and Fault allow any next values that satisfy them. MCDelivery uses only the smallest steps. Every
\* larger step equals several of them.
Next ==
    \/ \E m \in Messages : Send(m) \/ Retry(m) \/ Acknowledge(m) \/ Fail(m)
    \/ Store(queue')
    \/ \E q \in Queues :
        \/ \E i \in 1..Len(queue[q]) : Deliver(q, i)
        \/ \E offset \in 0..Len(seen[q]) : CommitOffset(q, offset) \/ Reset(q, offset) \/ CorrectOffset(q, offset)
    \/ Fault(answer', queue', committed', promise', serving')
    \/ Restart

\* The broker restarts. The group continues to read even if the broker crashes repeatedly (strong fairness).
\* Resets are finite in number.
DeliverFairness == \A q \in Queues : SF_vars(Deliver(q, Len(seen[q]) + 1))
RestartFairness == WF_vars(Restart)
ResetsEnd == <>[][\A q \in Queues : Len(seen'[q]) >= Len(seen[q])]_vars

Fairness == DeliverFairness /\ RestartFairness /\ ResetsEnd

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Acked == {m \in Messages : answer[m] = "acked"}

\* DELIV-1: the message is stored, and neither the group nor its offset has passed it
NoAckedLost ==
    promise =>
        \A m \in Acked :
            \E q \in Queues : \E i \in 1..Len(queue[q]) :
                /\ queue[q][i] = m
                /\ i <= committed[q] \/ i <= Len(seen[q]) => i <= Len(seen[q]) /\ seen[q][i] = m

\* DELIV-2
NoPhantom ==
    \A q \in Queues : \A i \in 1..Len(seen[q]) :
        seen[q][i] = Passed \/ (seen[q][i] \in Messages /\ sends[seen[q][i]] > 0)

\* DELIV-3, the producer's part: a message is stored no more often than it was sent
DuplicatesExplained == \A m \in Messages : Copies(m, queue) <= sends[m]

\* DELIV-4: the delivered messages are a prefix of the queue, in the queue's order
QueueOrder == promise => \A q \in Queues : IsPrefix(seen[q], queue[q])

\* DELIV-5: while a broker serves, the offset only decreases if the group itself moves back. UNCHANGED comes first,
\* here and below, only because it takes TLC less time.
OffsetMonotone ==
    [][UNCHANGED committed \/ \A q \in Queues : committed'[q] < committed[q] => ~serving' \/ Len(seen'[q]) <= committed'[q]]_vars

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A broker that does not serve delivers nothing, stores nothing and answers nothing.
SilentUntilRestarted ==
    [][~serving =>
        /\ seen' = seen
        /\ \A q \in Queues : Len(queue'[q]) <= Len(queue[q]) /\ committed'[q] <= committed[q]
        /\ \A m \in Messages : answer'[m] = "acked" => answer[m] = "acked"]_vars

\* Only the producer sends its message, at most once per step, and the status of the message records it.
SentOnceAStep ==
    [][UNCHANGED sends \/ \A m \in Messages :
        /\ sends'[m] \in {sends[m], sends[m] + 1}
        /\ sends'[m] # sends[m] => answer[m] \in {"unsent", "unknown"} /\ answer'[m] = "waiting"]_vars

\* A message gets an answer only while its producer waits.
AnsweredWhileWaiting ==
    [][UNCHANGED answer \/ \A m \in Messages : answer'[m] # answer[m] /\ answer'[m] # "waiting" => answer[m] = "waiting"]_vars

\* While `promise` holds, only a reset moves the group back, and the committed offset moves with it.
GoneBackByReset ==
    [][promise =>
        \A q \in Queues :
            Len(seen'[q]) < Len(seen[q]) => committed'[q] < committed[q] /\ committed'[q] = Len(seen'[q])]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A m \in Messages :
        /\ answer[m] = "unsent" => ENABLED <<Send(m)>>_answer
        /\ answer[m] = "unknown" => ENABLED <<Retry(m)>>_answer
        /\ answer[m] = "waiting" => ENABLED <<Fail(m)>>_answer
        /\ serving /\ answer[m] = "waiting" /\ (\E q \in Queues : m \in Range(queue[q])) =>
            ENABLED <<Acknowledge(m)>>_answer
        /\ serving /\ (\A q \in Queues : m \notin Range(queue[q])) =>
            \A q \in Queues : ENABLED <<Store([queue EXCEPT ![q] = Append(@, m)])>>_queue
    /\ \A q \in Queues :
        /\ serving =>
            /\ \A i \in 1..Len(queue[q]) : i <= Len(seen[q]) + 1 => ENABLED Deliver(q, i)
            /\ \A n \in (committed[q] + 1)..Len(seen[q]) : ENABLED <<CommitOffset(q, n)>>_committed
            /\ \A n \in 0..(committed[q] - 1) : ENABLED <<Reset(q, n)>>_committed
            /\ ~promise => \A n \in 0..(Len(seen[q]) - 1) : n <= Len(queue[q]) => ENABLED <<CorrectOffset(q, n)>>_seen
        /\ \A n \in 0..(Len(queue[q]) - 1) :
            ~promise \/ (n >= Len(seen[q]) /\ \A i \in (n + 1)..Len(queue[q]) : answer[queue[q][i]] # "acked") =>
                ENABLED <<Lose(q, n)>>_queue
        /\ ~serving => \A n \in 0..(committed[q] - 1) : ENABLED <<RollBack(q, n)>>_committed
    /\ promise => ENABLED <<Withdraw>>_promise
    /\ IF serving THEN ENABLED <<Crash>>_serving ELSE ENABLED <<Restart>>_serving

-----------------------------------------------------------------------------
(* Liveness *)

Delivered(m) == \E q \in Queues : \E i \in 1..Len(seen[q]) : seen[q][i] = m

\* DELIV-12
AckedDelivered == \A m \in Messages : answer[m] = "acked" /\ promise ~> Delivered(m) \/ ~promise

=============================================================================
