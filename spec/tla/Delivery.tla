------------------------------- MODULE Delivery -------------------------------
(***************************************************************************)
(* What a user is promised: what was answered SEND_OK is kept, and handed  *)
(* to the group in the order of its queue. Flush, Replication and Election *)
(* are ways to keep these queues, Group is a way to read them; each of     *)
(* them refines this module.                                               *)
(*                                                                         *)
(* Abstracted away, one sentence each:                                     *)
(*  - Brokers: where a queue is kept, and on how many disks, does not show.*)
(*  - Statuses: an answer is good (acked), or says nothing for certain     *)
(*    (unknown), whatever it was called on the wire.                       *)
(*  - The group: one subscriber; its members are the business of Group.    *)
(*  - Repetitions: an offset that is handed out again changes nothing here *)
(*    unless its message changed; what may repeat is told by Group.        *)
(*  - Skipping on purpose: a reset leads back, never forward.              *)
(*  - Expiry: a queue loses its end in a fault, never its beginning.       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,  \* what producers may send, strings
    Queues     \* the queues of one topic, strings

Passed == "passed" \* stands where the group went past an offset without being handed a message

ASSUME Queues # {} /\ Passed \notin Messages

Prefix(sequence, length) == SubSeq(sequence, 1, length)

Range(sequence) == {sequence[i] : i \in DOMAIN sequence}

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

-----------------------------------------------------------------------------
(* State *)

VARIABLE answer    \* what the producer knows of each message
Answers == {"unsent", "waiting", "acked", "unknown"}
AnswerOK == answer \in [Messages -> Answers]

VARIABLE sends     \* how often the producer sent each message
SendsOK == sends \in [Messages -> Nat]

VARIABLE queue     \* what is stored of each queue, in its order
QueueOK == queue \in [Queues -> Seq(Messages)]

VARIABLE seen      \* by queue and offset, what the group was handed there last; as far as it is
SeenOK == seen \in [Queues -> Seq(Messages \cup {Passed})]

VARIABLE committed \* the group's offset in each queue, as the broker has it
CommittedOK == committed \in [Queues -> Nat]

VARIABLE promise   \* no fault went beyond what the configuration guarantees against
PromiseOK == promise \in BOOLEAN

VARIABLE serving   \* FALSE from a fault that takes the broker's memory until it is up again
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

\* Of these queues, at how many places the message is.
Copies(m, queues) == Cardinality({place \in UNION {{q} \X DOMAIN queues[q] : q \in Queues} : queues[place[1]][place[2]] = m})

Stored(m, queues) == \E q \in Queues : \E i \in 1..Len(queues[q]) : queues[q][i] = m

SendAgain(m) ==
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ sends' = [sends EXCEPT ![m] = @ + 1]
    /\ UNCHANGED <<queue, seen, committed, promise, serving>>

Send(m) == answer[m] = "unsent" /\ SendAgain(m)

\* A producer that knows nothing of its message sends it once more: the first may be stored, or still become so.
Retry(m) == answer[m] = "unknown" /\ SendAgain(m)

\* Queues grow at their ends, by what was sent (perhaps in this very step), and not more often than it was sent.
Store(longer) ==
    /\ serving
    /\ \A q \in Queues : IsPrefix(queue[q], longer[q])
    /\ queue' = longer
    /\ LET fresh == {m \in Messages : answer[m] = "unsent" /\ Stored(m, longer)}
       IN  /\ answer' = [m \in Messages |-> IF m \in fresh THEN "waiting" ELSE answer[m]]
           /\ sends' = [m \in Messages |-> IF m \in fresh THEN 1 ELSE sends[m]]
    /\ \A m \in Messages : Copies(m, longer) <= sends'[m]
    /\ UNCHANGED <<seen, committed, promise, serving>>

Acknowledge(m) ==
    /\ serving
    /\ answer[m] = "waiting"
    /\ Stored(m, queue)
    /\ answer' = [answer EXCEPT ![m] = "acked"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>

\* No answer in time, or one that says nothing for certain. The message may be stored, now or later.
Fail(m) ==
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "unknown"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>

-----------------------------------------------------------------------------
(* The group *)

\* The group is handed what is at the i-th place of the queue: the next it has not seen, or an earlier one again.
Deliver(q, i) ==
    /\ serving
    /\ i <= Len(queue[q]) /\ i <= Len(seen[q]) + 1
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, i - 1) \o <<queue[q][i]>> \o SubSeq(@, i + 1, Len(@))]
    /\ UNCHANGED <<answer, sends, queue, committed, promise, serving>>

\* What was handed out is done; never more than that.
CommitOffset(q, offset) ==
    /\ serving
    /\ committed[q] < offset /\ offset <= Len(seen[q])
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>

\* The group goes back, and its offset with it.
GoBack(q, offset) ==
    /\ serving
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, offset)]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, promise, serving>>

\* An operator sends the group back.
Reset(q, offset) == offset < committed[q] /\ GoBack(q, offset)

\* The group is beyond the end of a queue that lost its end (PULL_OFFSET_MOVED), and goes back.
CorrectOffset(q, offset) ==
    /\ ~promise
    /\ offset <= Len(queue[q]) /\ offset < Len(seen[q])
    /\ GoBack(q, offset)

-----------------------------------------------------------------------------
(* Faults *)

\* Nothing that was answered, or handed out, is missing in these queues.
Keeps(queues) ==
    /\ \A m \in Messages : answer[m] = "acked" => Stored(m, queues)
    /\ \A q \in Queues : Len(seen[q]) <= Len(queues[q])

\* Waiting producers lose their answer, queues their end, and offsets go back to what was on disk when the broker goes
\* down. While the promise stands, nothing is lost that was answered or handed out; a fault that is beyond the guarantee
\* ends the promise.
Fault(answers, kept, offsets, stands, serves) ==
    /\ serves => serving /\ offsets = committed
    /\ serving' = serves
    /\ stands => promise /\ Keeps(kept)
    /\ promise' = stands
    /\ \A m \in Messages : answers[m] = answer[m] \/ (answer[m] = "waiting" /\ answers[m] = "unknown")
    /\ answer' = answers
    /\ \A q \in Queues : IsPrefix(kept[q], queue[q])
    /\ queue' = kept
    /\ \A q \in Queues : offsets[q] <= committed[q]
    /\ committed' = offsets
    /\ UNCHANGED <<sends, seen>>

(* Its parts, one at a time *)

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
(* The whole *)

\* Store and Fault allow any next values that fulfil them; MCDelivery tries the smallest steps, which make up all others.
Next ==
    \/ \E m \in Messages : Send(m) \/ Retry(m) \/ Acknowledge(m) \/ Fail(m)
    \/ Store(queue')
    \/ \E q \in Queues :
        \/ \E i \in 1..Len(queue[q]) : Deliver(q, i)
        \/ \E offset \in 0..Len(seen[q]) : CommitOffset(q, offset) \/ Reset(q, offset) \/ CorrectOffset(q, offset)
    \/ Fault(answer', queue', committed', promise', serving')
    \/ Restart

\* The broker comes back, and the group reads on, although the broker may crash again and again (strong), and although
\* it is sent back, but only so often.
DeliverFairness == \A q \in Queues : SF_vars(Deliver(q, Len(seen[q]) + 1))
RestartFairness == WF_vars(Restart)
ResetsEnd == <>[][\A q \in Queues : Len(seen'[q]) >= Len(seen[q])]_vars

Fairness == DeliverFairness /\ RestartFairness /\ ResetsEnd

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. Names are those of spec/invariants.toml. *)

Acked == {m \in Messages : answer[m] = "acked"}

\* DELIV-1: it is there, and neither the group nor its offset has passed it by
NoAckedLost ==
    promise =>
        \A m \in Acked :
            \E q \in Queues : \E i \in 1..Len(queue[q]) :
                /\ queue[q][i] = m
                /\ i <= committed[q] \/ i <= Len(seen[q]) => i <= Len(seen[q]) /\ seen[q][i] = m

\* DELIV-2
NoPhantom == \A q \in Queues : \A i \in 1..Len(seen[q]) : seen[q][i] \in {m \in Messages : sends[m] > 0} \cup {Passed}

\* DELIV-3, the producer's half: a message is stored no more often than it was sent
DuplicatesExplained == \A m \in Messages : Copies(m, queue) <= sends[m]

\* DELIV-4: what the group was handed is the queue, in the queue's order
QueueOrder == promise => \A q \in Queues : IsPrefix(seen[q], queue[q])

\* DELIV-5: while a broker serves, unless the group itself is sent back there
OffsetMonotone ==
    [][\A q \in Queues : committed'[q] < committed[q] => ~serving' \/ Len(seen'[q]) <= committed'[q]]_vars

(* Consistency: what a step may do, so that a wrong step shows where it is made. *)

\* A broker that does not serve serves nobody.
SilentUntilRestarted ==
    [][~serving =>
        /\ seen' = seen
        /\ \A q \in Queues : Len(queue'[q]) <= Len(queue[q]) /\ committed'[q] <= committed[q]
        /\ \A m \in Messages : answer'[m] = "acked" => answer[m] = "acked"]_vars

\* A message is sent by its producer alone, once a step, and its answer says so.
SentOnceAStep ==
    [][\A m \in Messages :
        /\ sends'[m] \in {sends[m], sends[m] + 1}
        /\ sends'[m] # sends[m] => answer[m] \in {"unsent", "unknown"} /\ answer'[m] = "waiting"]_vars

\* An answer is given to somebody who waits.
AnsweredWhileWaiting ==
    [][\A m \in Messages : answer'[m] # answer[m] /\ answer'[m] # "waiting" => answer[m] = "waiting"]_vars

\* While the promise stands, the group is sent back by a reset alone, and its offset with it.
GoneBackByReset ==
    [][promise =>
        \A q \in Queues :
            Len(seen'[q]) < Len(seen[q]) => committed'[q] < committed[q] /\ committed'[q] = Len(seen'[q])]_vars

\* What may happen can happen: nothing is kept only because this module forbids what would break it.
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
