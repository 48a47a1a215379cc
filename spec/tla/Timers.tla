-------------------------------- MODULE Timers --------------------------------
(***************************************************************************)
(* A producer sends a message with a delay. The broker keeps the message   *)
(* in an internal queue and makes it visible when it is due, unless the    *)
(* producer recalls it before. A message that waits for long is appended   *)
(* again (rolled), so that the start of the log can be deleted. A point is *)
(* a record that says which messages are done, so that a restart need not  *)
(* read the whole log. The log is the only state that survives a crash.    *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The log: Flush and Replication say which prefix is safe; here a      *)
(*    crash, or a slave that takes over, keeps at least this prefix.       *)
(*  - Time: `now` is the broker's store time, which never goes back; when  *)
(*    the clock is set back it stands still, and a jump is many ticks.     *)
(*  - Consumers: a message is visible when its final record is in the log. *)
(*  - Sends: a producer does not repeat a send whose result it does not    *)
(*    know.                                                                *)
(*  - Refusals change nothing, so they are not actions.                    *)
(*  - Lateness is not bounded here; a due message is delivered eventually. *)
(*  - Deletion removes records one by one; a segment is several of them.   *)
(*  - Slaves delete only what their master does not need.                  *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Msgs,     \* the messages, strings
    Delays,   \* the delays that producers ask for
    DelayMax  \* the broker accepts no longer delay: 3 days

ASSUME Msgs # {} /\ Delays \subseteq Nat \ {0} /\ DelayMax \in Nat

-----------------------------------------------------------------------------
(* State *)

VARIABLE log      \* the broker's log: waiting messages and their copies, final messages, recalls, points
Records == [kind : {"timer", "final", "recall", "point"}, of : SUBSET Msgs, due : Nat, at : Nat, read : Nat, scan : Nat]
LogOK == log \in Seq(Records)

VARIABLE begin    \* the length of the prefix of the log that is deleted
BeginOK == begin \in 0..Len(log)

VARIABLE safe     \* the length of the prefix of the log that no crash and no takeover removes
SafeOK == safe \in begin..Len(log)

VARIABLE ready    \* whether the broker has read its log since it started
ReadyOK == ready \in BOOLEAN

VARIABLE read     \* the length of the prefix of the log that the table in memory contains
ReadOK == read \in 0..Len(log)

VARIABLE waiting  \* the table in memory: the places in the log of the messages that wait
WaitingOK == waiting \subseteq 1..Len(log)

VARIABLE now      \* the broker's store time
NowOK == now \in Nat

VARIABLE asked    \* by message: the time that its producer asked for; 0 if it is not sent
AskedOK == asked \in [Msgs -> Nat]

VARIABLE phase    \* by message: what its producer knows
PhaseOK == phase \in [Msgs -> {"new", "sent", "acked", "recalled"}]

memory == <<ready, read, waiting>>
producer == <<asked, phase>>
vars == <<log, begin, safe, memory, now, producer>>

TypeOK ==
    LogOK /\ BeginOK /\ SafeOK /\ ReadyOK /\ ReadOK /\ WaitingOK /\ NowOK /\ AskedOK /\ PhaseOK

Init ==
    /\ log = <<>>
    /\ begin = 0
    /\ safe = 0
    /\ ready = TRUE
    /\ read = 0
    /\ waiting = {}
    /\ now = 0
    /\ asked = [t \in Msgs |-> 0]
    /\ phase = [t \in Msgs |-> "new"]

-----------------------------------------------------------------------------
(* What a log says *)

Record(kind, t, due) == [kind |-> kind, of |-> {t}, due |-> due, at |-> now, read |-> 0, scan |-> 0]

PointRecord(upto, covered, scan) ==
    [kind |-> "point", of |-> {}, due |-> upto, at |-> now, read |-> covered, scan |-> scan]

Is(i, kind, t) == log[i].kind = kind /\ t \in log[i].of

\* The message has such a record after a place, in the first `length` records.
Has(kind, t, after, length) == \E i \in after + 1..length : Is(i, kind, t)

Min(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m

\* The latest copy of a message; 0 if it has none in the log.
Latest(t) ==
    LET at == {i \in begin + 1..Len(log) : Is(i, "timer", t)}
    IN IF at = {} THEN 0 ELSE CHOOSE i \in at : \A j \in at : j <= i

\* The last point, or one that covers nothing.
LastPoint ==
    LET at == {i \in begin + 1..Len(log) : log[i].kind = "point"}
    IN IF at = {} THEN PointRecord(0, 0, 0) ELSE log[CHOOSE i \in at : \A j \in at : j <= i]

\* A point says that the message at this place is done: it was read, and due.
Covered(i) == i <= LastPoint.read /\ log[i].due <= LastPoint.due

\* The log after the point shows that the message is done.
Evidence(t) ==
    \/ \E i \in begin + 1..Len(log) : i >= LastPoint.scan /\ Is(i, "final", t)
    \/ Has("recall", t, begin, Len(log))

\* The places of the messages that wait, as the log shows them.
Recovered == {i \in begin + 1..Len(log) : \E t \in Msgs : i = Latest(t) /\ ~Covered(i) /\ ~Evidence(t)}

-----------------------------------------------------------------------------
(* The producer *)

\* The broker accepts a delay of at most DelayMax.
Accepts(delay) == delay <= DelayMax

Send(t, delay) ==
    /\ ready
    /\ phase[t] = "new"
    /\ Accepts(delay)
    /\ phase' = [phase EXCEPT ![t] = "sent"]
    /\ asked' = [asked EXCEPT ![t] = now + delay]
    /\ log' = Append(log, Record("timer", t, now + delay))
    /\ UNCHANGED <<begin, safe, memory, now>>

\* SEND_OK is received.
Acknowledge(t) ==
    /\ phase[t] = "sent"
    /\ Has("timer", t, 0, safe)
    /\ phase' = [phase EXCEPT ![t] = "acked"]
    /\ UNCHANGED <<log, begin, safe, memory, now, asked>>

\* The success of a recall is received.
AcknowledgeRecall(t) ==
    /\ phase[t] \in {"sent", "acked"}
    /\ Has("recall", t, 0, safe)
    /\ phase' = [phase EXCEPT ![t] = "recalled"]
    /\ UNCHANGED <<log, begin, safe, memory, now, asked>>

-----------------------------------------------------------------------------
(* The broker *)

Waits(t) == {i \in waiting : t \in log[i].of}

\* The next record of the log is read into the table.
Learn ==
    /\ ready
    /\ read < Len(log)
    /\ read' = read + 1
    /\ waiting' = IF log[read + 1].kind = "timer" THEN waiting \cup {read + 1} ELSE waiting
    /\ UNCHANGED <<log, begin, safe, ready, now, producer>>

\* The message is appended for its consumers, and leaves the table.
Finish(t, i) ==
    /\ log' = Append(log, Record("final", t, log[i].due))
    /\ waiting' = waiting \ {i}
    /\ UNCHANGED <<begin, safe, ready, read, now, producer>>

IsDue(i) == log[i].due <= now

Deliver(t) ==
    /\ ready
    /\ \E i \in Waits(t) : IsDue(i) /\ Finish(t, i)

Recall(t) ==
    /\ ready
    /\ \E i \in Waits(t) :
        /\ log' = Append(log, Record("recall", t, log[i].due))
        /\ waiting' = waiting \ {i}
    /\ UNCHANGED <<begin, safe, ready, read, now, producer>>

\* A copy is appended for a message whose record is old. The table gets the copy when it is read.
Roll(t) ==
    /\ ready
    /\ \E i \in Waits(t) :
        /\ log' = Append(log, Record("timer", t, log[i].due))
        /\ waiting' = waiting \ {i}
    /\ UNCHANGED <<begin, safe, ready, read, now, producer>>

\* All messages that were read and are due by this time are done.
Upto ==
    IF waiting = {} THEN now
    ELSE LET earliest == Min({log[i].due : i \in waiting})
         IN IF earliest > now THEN now ELSE earliest - 1

\* Where the final messages begin that the point does not cover.
ScanFrom ==
    Min({Len(log) + 1} \cup {i \in begin + 1..Len(log) : log[i].kind = "final" /\ log[i].due > Upto})

Point ==
    /\ ready
    /\ log' = Append(log, PointRecord(Upto, read, ScanFrom))
    /\ UNCHANGED <<begin, safe, memory, now, producer>>

\* A message at this place would be lost without its record.
Needed(i) ==
    \E t \in Msgs :
        /\ Is(i, "timer", t)
        /\ ~Has("timer", t, i, safe) /\ ~Has("final", t, i, safe) /\ ~Has("recall", t, i, safe)

\* The first record of the log is deleted.
Delete ==
    /\ ready
    /\ begin < safe
    /\ ~Needed(begin + 1)
    /\ begin' = begin + 1
    /\ UNCHANGED <<log, safe, memory, now, producer>>

\* The log is flushed and replicated.
Secure ==
    /\ safe < Len(log)
    /\ safe' = Len(log)
    /\ UNCHANGED <<log, begin, memory, now, producer>>

Tick ==
    /\ now' = now + 1
    /\ UNCHANGED <<log, begin, safe, memory, producer>>

\* The broker crashes, and restarts with what is left of its log. Or the slave takes over.
Crash(length) ==
    /\ length \in safe..Len(log)
    /\ log' = SubSeq(log, 1, length)
    /\ ready' = FALSE
    /\ read' = 0
    /\ waiting' = {}
    /\ UNCHANGED <<begin, safe, now, producer>>

\* The broker reads its log before it delivers.
Read ==
    /\ ~ready
    /\ ready' = TRUE
    /\ read' = Len(log)
    /\ waiting' = Recovered
    /\ UNCHANGED <<log, begin, safe, now, producer>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E t \in Msgs :
        \/ \E delay \in Delays : Send(t, delay)
        \/ Acknowledge(t) \/ AcknowledgeRecall(t) \/ Deliver(t) \/ Recall(t) \/ Roll(t)
    \/ Learn \/ Point \/ Delete \/ Secure \/ Tick \/ Read
    \/ \E length \in safe..Len(log) : Crash(length)

\* The broker reads its log, delivers and flushes. No request needs to arrive.
Reads == WF_vars(Read)
Learns == WF_vars(Learn)
Delivers == \A t \in Msgs : SF_vars(Deliver(t))
Secures == SF_vars(Secure)

Fairness == Reads /\ Learns /\ Delivers /\ Secures

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Count(kind, t) == Cardinality({i \in 1..Len(log) : Is(i, kind, t)})

\* DELIV-8: a message is not visible before the time that its producer asked for
NotEarly == \A i \in 1..Len(log) : log[i].kind = "final" => \A t \in log[i].of : log[i].at >= asked[t]

\* TIMER-1: a message whose send was acknowledged is visible, recalled, or the broker will deliver it
TimerKept ==
    \A t \in Msgs :
        phase[t] = "acked" /\ ~Has("final", t, 0, Len(log)) /\ ~Has("recall", t, 0, Len(log)) =>
            IF ready THEN Waits(t) # {} \/ Latest(t) > read ELSE \E i \in Recovered : t \in log[i].of

\* TIMER-2: a message becomes visible at most once
TimerOnce == \A t \in Msgs : Count("final", t) <= 1

\* TIMER-3: a message whose recall succeeded is never visible
RecallHolds == \A t \in Msgs : phase[t] = "recalled" => ~Has("final", t, 0, Len(log))

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ ~ready => read = 0 /\ waiting = {}
    /\ \A i \in waiting : i > begin /\ i <= read /\ log[i].kind = "timer"
    /\ \A t \in Msgs :
        /\ Cardinality(Waits(t)) <= 1
        /\ phase[t] = "new" <=> asked[t] = 0
        /\ Count("recall", t) + Count("final", t) <= 1
        /\ phase[t] = "recalled" => Count("recall", t) = 1
        /\ Count("final", t) + Count("recall", t) > 0 => Waits(t) = {}
    /\ \A i \in 1..Len(log) :
        /\ log[i].at <= now
        /\ i > 1 => log[i - 1].at <= log[i].at
        /\ \A t \in log[i].of : log[i].due = asked[t]
        /\ log[i].kind = "point" => log[i].read < i /\ log[i].scan <= i /\ log[i].due <= log[i].at

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

Added == log'[Len(log')]

Grows == Len(log') = Len(log) + 1 /\ SubSeq(log', 1, Len(log)) = log

\* TIMER-5: a message that was accepted is delayed by what its producer asked for, and by no more than DelayMax
DelayBounded ==
    [][\A t \in Msgs : asked'[t] # asked[t] =>
        /\ phase[t] = "new" /\ Grows
        /\ \E delay \in Delays : delay <= DelayMax /\ asked'[t] = now + delay /\ Added.due = asked'[t]]_vars

\* The log grows by one record, of this time. A crash shortens it, but not the safe prefix.
LogGrows ==
    [][log' # log =>
        \/ Grows /\ ready /\ Added.at = now /\ UNCHANGED <<begin, safe, ready, read, now>>
        \/ ~ready' /\ Len(log') >= safe /\ log' = SubSeq(log, 1, Len(log'))]_vars

\* Each record has its cause. A message that is delivered, recalled or rolled leaves the table.
AddedRightly ==
    [][Grows =>
        CASE Added.kind = "point" -> Added.of = {} /\ waiting' = waiting /\ Added.read <= read /\ UNCHANGED producer
          [] OTHER ->
                \E t \in Msgs :
                    /\ Added.of = {t}
                    /\ Added.read = 0 /\ Added.scan = 0
                    /\ IF phase[t] = "new" THEN Added.kind = "timer" /\ phase'[t] = "sent" /\ waiting' = waiting
                       ELSE waiting' = waiting \ Waits(t) /\ Waits(t) # {} /\ UNCHANGED producer
                    /\ Added.kind = "final" => now >= asked[t]
                    /\ \A u \in Msgs \ {t} : asked'[u] = asked[u] /\ phase'[u] = phase[u]]_vars

\* The safe prefix never shrinks. It contains only what was appended.
SafeGrows == [][safe' # safe => safe' = Len(log) /\ UNCHANGED <<log, begin, memory, now, producer>>]_vars

\* Only what no message needs is deleted.
BeginGrows ==
    [][begin' # begin =>
        begin' = begin + 1 /\ begin < safe /\ UNCHANGED <<log, safe, memory, now, producer>>]_vars

\* Time goes on, and nothing happens meanwhile.
TimeGrows == [][now' # now => now' = now + 1 /\ UNCHANGED <<log, begin, safe, memory, producer>>]_vars

\* The table grows by what is read, record by record, or from the whole log after a crash.
TableFollows ==
    [][read' # read =>
        \/ ready /\ ready' /\ read' = read + 1 /\ UNCHANGED <<log, begin, safe, now, producer>>
           /\ waiting' = waiting \cup {i \in {read'} : log[i].kind = "timer"}
        \/ ~ready /\ ready' /\ read' = Len(log) /\ UNCHANGED <<log, begin, safe, now, producer>>
        \/ ~ready' /\ read' = 0 /\ waiting' = {} /\ UNCHANGED <<begin, safe, now, producer>>]_vars

\* A producer learns the result of its send, and then perhaps of a recall.
PhasesFollow ==
    [][\A t \in Msgs : phase'[t] # phase[t] =>
        /\ <<phase[t], phase'[t]>> \in
            {<<"new", "sent">>, <<"sent", "acked">>, <<"sent", "recalled">>, <<"acked", "recalled">>}
        /\ phase' = [phase EXCEPT ![t] = phase'[t]]
        /\ phase'[t] = "sent" => ready /\ Grows
        /\ phase'[t] # "sent" => UNCHANGED <<log, begin, safe, memory, now, asked>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A t \in Msgs :
        /\ phase[t] = "new" /\ ready => \A delay \in Delays :
            delay <= DelayMax => ENABLED (Next /\ asked'[t] = now + delay /\ Len(log') = Len(log) + 1)
        /\ phase[t] = "sent" /\ Has("timer", t, 0, safe) => ENABLED (Next /\ phase'[t] = "acked")
        /\ Waits(t) # {} => ENABLED (Next /\ log' = Append(log, Record("recall", t, asked[t])))
        /\ Waits(t) # {} => ENABLED (Next /\ log' = Append(log, Record("timer", t, asked[t])))
        /\ Waits(t) # {} /\ now >= asked[t] => ENABLED (Next /\ log' = Append(log, Record("final", t, asked[t])))
        /\ phase[t] # "recalled" /\ Has("recall", t, 0, safe) => ENABLED (Next /\ phase'[t] = "recalled")
    /\ ready => ENABLED (Next /\ Len(log') = Len(log) + 1 /\ log'[Len(log')].kind = "point")
    /\ ready /\ read < Len(log) => ENABLED (Next /\ read' = read + 1)
    /\ safe < Len(log) => ENABLED (Next /\ safe' = Len(log))
    /\ ~ready => ENABLED (Next /\ ready')
    /\ ready => \A length \in safe..Len(log) : ENABLED (Next /\ ~ready' /\ Len(log') = length)
    /\ ready /\ begin < safe /\ log[begin + 1].kind # "timer" => ENABLED (Next /\ begin' = begin + 1)

-----------------------------------------------------------------------------
(* Liveness *)

\* TIMER-4: a message whose send was acknowledged is eventually visible or recalled, once it is due
TimerDelivered ==
    \A t \in Msgs :
        phase[t] = "acked" /\ now >= asked[t] ~> Has("final", t, 0, safe) \/ Has("recall", t, 0, safe)

=============================================================================
