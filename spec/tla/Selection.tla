------------------------------- MODULE Selection --------------------------------
(***************************************************************************)
(* A member reads a queue and receives only the messages that its          *)
(* expression selects. The broker compares hash codes of tags, and the     *)
(* member compares the tags themselves. The application may change the     *)
(* expression while a pull is in progress. The pull contains the           *)
(* expression, so one expression decides about each message.               *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Messages: a message is its tag, and the empty text is no tag.        *)
(*  - Expressions: an expression is the set of tags that it selects; the   *)
(*    set of all tags, the empty text included, is `*`.                    *)
(*  - SQL92: the broker evaluates such an expression exactly, which is the *)
(*    case in which no two tags have the same hash code.                   *)
(*  - Filter servers: a function that a filter server runs is such an      *)
(*    expression too. Without the function, or if it fails at the first    *)
(*    message, the pull is refused, which is Lose. If it fails later, the  *)
(*    answer ends before that message, as any answer may. So a failure     *)
(*    only delays, unless it occurs each time.                             *)
(*  - Queues are independent, so there is one.                             *)
(*  - Long polling only delays the answer of a pull.                       *)
(*  - Heartbeats bring expressions to the broker too; they decide about    *)
(*    pulls that contain none, which SelectionShipped models.              *)
(*  - Offsets that go back repeat messages under the new expression; Group *)
(*    models them.                                                         *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Tags,       \* the tags of messages, strings; the empty text is no tag
    Colliding,  \* the tags that have one hash code in common
    Expressions,\* the expressions that members use, sets of tags
    BatchMax    \* a response has at most this many messages: 32

ASSUME
    /\ Colliding \subseteq Tags \ {""} /\ Expressions # {} /\ BatchMax \in Nat \ {0}
    /\ \A e \in Expressions : e \subseteq Tags /\ ("" \in e => e = Tags)

NoPull == [from |-> 0, by |-> {}]
NoAnswer == [next |-> 0, found |-> {}]

-----------------------------------------------------------------------------
(* State *)

VARIABLE queue     \* the tags of the messages in the queue
QueueOK == queue \in Seq(Tags)

VARIABLE wanted    \* the member's expression
WantedOK == wanted \in Expressions

VARIABLE position  \* the number of messages that the member has passed
PositionOK == position \in 0..Len(queue)

VARIABLE pull      \* the pull in progress: the place of its first message and its expression; place 0 is none
PullOK == pull \in [from : 0..Len(queue) + 1, by : Expressions \cup {{}}]

VARIABLE answer    \* the broker's answer: the next place and the places of the messages in it; next 0 is none
AnswerOK == answer \in [next : 0..Len(queue) + 1, found : SUBSET (1..Len(queue))]

VARIABLE received  \* the places of the messages that the listener received
ReceivedOK == received \subseteq 1..Len(queue)

VARIABLE judged    \* history: by place, the expression of the pull that passed it
JudgedOK == judged \in Seq(Expressions)

member == <<wanted, position, pull, answer, received, judged>>
vars == <<queue, member>>

TypeOK ==
    QueueOK /\ WantedOK /\ PositionOK /\ PullOK /\ AnswerOK /\ ReceivedOK /\ JudgedOK

Init ==
    /\ queue = <<>>
    /\ wanted \in Expressions
    /\ position = 0
    /\ pull = NoPull
    /\ answer = NoAnswer
    /\ received = {}
    /\ judged = <<>>

-----------------------------------------------------------------------------
(* Filters *)

SameHash(t, u) == t = u \/ {t, u} \subseteq Colliding

\* The broker passes a message if an expression contains its hash code, and each message for `*`.
Passes(t, e) == e = Tags \/ \E u \in e : SameHash(t, u)

\* The member compares the tag itself.
Selects(e, t) == t \in e

\* The expression that the broker uses.
Used == pull.by

-----------------------------------------------------------------------------
(* The queue and subscriptions *)

Store(t) ==
    /\ queue' = Append(queue, t)
    /\ UNCHANGED member

\* The application changes the expression.
Subscribe(e) ==
    /\ e # wanted
    /\ wanted' = e
    /\ UNCHANGED <<queue, position, pull, answer, received, judged>>

-----------------------------------------------------------------------------
(* Pulls *)

Pull ==
    /\ pull = NoPull
    /\ pull' = [from |-> position + 1, by |-> wanted]
    /\ UNCHANGED <<queue, wanted, position, answer, received, judged>>

\* The broker examines the messages up to a place. It stops when the response is full.
Found(last) == {i \in pull.from..last : Passes(queue[i], Used)}

Answer(last) ==
    /\ pull # NoPull
    /\ answer = NoAnswer
    /\ last \in pull.from..Len(queue)
    /\ Cardinality(Found(last)) <= BatchMax
    /\ answer' = [next |-> last + 1, found |-> Found(last)]
    /\ UNCHANGED <<queue, wanted, position, pull, received, judged>>

\* The messages in the answer that the listener receives.
Taken == {i \in answer.found : Selects(pull.by, queue[i])}

Receive ==
    /\ answer # NoAnswer
    /\ received' = received \cup Taken
    /\ position' = answer.next - 1
    /\ judged' = judged \o [i \in 1..answer.next - pull.from |-> pull.by]
    /\ pull' = NoPull
    /\ answer' = NoAnswer
    /\ UNCHANGED <<queue, wanted>>

\* The pull or its answer is lost, or the broker refuses it. The member pulls again.
Lose ==
    /\ pull # NoPull
    /\ pull' = NoPull
    /\ answer' = NoAnswer
    /\ UNCHANGED <<queue, wanted, position, received, judged>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E t \in Tags : Store(t)
    \/ \E e \in Expressions : Subscribe(e)
    \/ Pull \/ Receive \/ Lose
    \/ \E last \in 1..Len(queue) : Answer(last)

\* The member pulls, the broker answers, and not every pull is lost.
Pulls == WF_vars(Pull)
Answers == SF_vars(\E last \in 1..Len(queue) : Answer(last))
Receives == SF_vars(Receive)

Fairness == Pulls /\ Answers /\ Receives

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* DELIV-10: of the messages that it passed, the member received exactly those that its expression selects
FilterSound == \A i \in 1..position : i \in received <=> queue[i] \in judged[i]

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ Len(judged) = position
    /\ received \subseteq 1..position
    /\ pull # NoPull => pull.from = position + 1 /\ pull.by \in Expressions
    /\ pull = NoPull => pull.from = 0 /\ pull.by = {} /\ answer = NoAnswer
    /\ answer = NoAnswer => answer.next = 0 /\ answer.found = {}
    /\ answer # NoAnswer =>
        /\ answer.next > pull.from
        /\ answer.found \subseteq pull.from..answer.next - 1
        /\ Cardinality(answer.found) <= BatchMax

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

QueueGrows == [][queue' # queue => Len(queue') = Len(queue) + 1 /\ SubSeq(queue', 1, Len(queue)) = queue /\ UNCHANGED member]_vars

\* The application changes the expression, and no pull that is in progress.
WantedFollows ==
    [][wanted' # wanted => UNCHANGED <<queue, position, pull, answer, received, judged>>]_vars

\* A pull begins with the present expression, and ends when its answer is received or lost.
PullsFollow ==
    [][pull' # pull =>
        IF pull = NoPull THEN pull' = [from |-> position + 1, by |-> wanted] /\ UNCHANGED <<queue, position, answer, received>>
        ELSE pull' = NoPull /\ answer' = NoAnswer]_vars

\* An answer belongs to a pull, and contains each message with a selected tag, and only those that the hash codes allow.
AnswersFollow ==
    [][answer' # answer /\ answer' # NoAnswer =>
        /\ answer = NoAnswer /\ pull # NoPull /\ answer'.next \in pull.from + 1..Len(queue) + 1
        /\ {i \in pull.from..answer'.next - 1 : queue[i] \in pull.by} \subseteq answer'.found
        /\ \A i \in answer'.found : pull.by = Tags \/ queue[i] \in pull.by \/ (queue[i] \in Colliding /\ pull.by \cap Colliding # {})
        /\ UNCHANGED <<queue, pull, position, received>>]_vars

\* The member advances with an answer.
PositionFollows ==
    [][position' # position \/ received' # received \/ judged' # judged =>
        /\ answer # NoAnswer /\ position' = answer.next - 1
        /\ received \subseteq received' /\ received' \ received \subseteq answer.found
        /\ SubSeq(judged', 1, position) = judged /\ \A i \in position + 1..position' : judged'[i] = pull.by
        /\ UNCHANGED <<queue, wanted>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A t \in Tags : ENABLED (Next /\ queue' = Append(queue, t))
    /\ \A e \in Expressions \ {wanted} : ENABLED (Next /\ wanted' = e)
    /\ pull = NoPull => ENABLED (Next /\ pull'.by = wanted)
    /\ pull # NoPull => ENABLED (Next /\ pull' = NoPull /\ position' = position)
    /\ pull # NoPull /\ answer = NoAnswer /\ pull.from <= Len(queue) => ENABLED (Next /\ answer'.next = pull.from + 1)
    /\ pull # NoPull /\ answer = NoAnswer /\ pull.from < Len(queue) /\ BatchMax > 1 => ENABLED (Next /\ answer'.next = pull.from + 2)
    /\ pull # NoPull /\ answer = NoAnswer /\ pull.from < Len(queue)
       /\ ~(pull.by = Tags \/ queue[pull.from] \in pull.by \/ (queue[pull.from] \in Colliding /\ pull.by \cap Colliding # {}))
       => ENABLED (Next /\ answer'.next = pull.from + 2)
    /\ answer # NoAnswer => ENABLED (Next /\ position' = answer.next - 1)

=================================================================================
