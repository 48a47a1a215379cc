-------------------------------- MODULE Retry ---------------------------------
(***************************************************************************)
(* A member of a group consumes messages. It sends a message that fails    *)
(* back to the broker. The broker stores a copy in a queue of delayed      *)
(* messages and, when the copy is due, another copy in the retry topic of  *)
(* the group. After RetriesMax retries the message becomes a dead letter.  *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The log: Flush and Replication say which prefix is safe; here a      *)
(*    crash, or a slave that takes over, keeps at least this prefix.       *)
(*  - Reading: consumers, and the service that delivers delayed messages,  *)
(*    read only the safe prefix.                                           *)
(*  - Queues: the topic, the retry topic and each delay level have one.    *)
(*  - Members: Group models moved queues; here the end of the member       *)
(*    stands for each event after which a message is delivered again.      *)
(*  - Offsets: they are committed at any time, so a member that ends       *)
(*    leaves the latest possible ones, or none.                            *)
(*  - Requests: the broker stores a copy, and the member then receives the *)
(*    answer or none; the member's own copy in the retry topic is a second *)
(*    copy.                                                                *)
(*  - Time: `now` is the broker's store time, which never goes back, and   *)
(*    it passes only while a message waits for it.                         *)
(*  - Delays: the k-th level has a delay of k ticks.                      *)
(*  - Levels that a consumer names replace those of the ladder; here it    *)
(*    names none.                                                          *)
(*  - A listener that runs too long counts as one that failed.             *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Msgs,       \* the messages, strings
    LevelMax,   \* the highest level of delay: 18
    RetriesMax  \* the retries before a message becomes a dead letter: 16

ASSUME Msgs # {} /\ LevelMax \in Nat \ {0} /\ RetriesMax \in Nat

-----------------------------------------------------------------------------
(* State *)

VARIABLE log       \* the broker's log: records of the topic, delayed copies, copies in the retry topic, dead letters
Records == [kind : {"topic", "delay", "retry", "dead"}, of : Msgs, times : Nat, from : Nat, at : Nat, due : Nat]
LogOK == log \in Seq(Records)

VARIABLE safe      \* the length of the prefix of the log that no crash and no takeover removes
SafeOK == safe \in 0..Len(log)

VARIABLE moved     \* the places of the delayed copies that are in the retry topic, as the broker counts them
MovedOK == moved \subseteq 1..Len(log)

VARIABLE now       \* the broker's store time
NowOK == now \in Nat

VARIABLE calls     \* the places of the records that the listener processes
CallsOK == calls \subseteq 1..safe

VARIABLE failed    \* the places of the records that failed, and must be sent back
FailedOK == failed \subseteq 1..safe

VARIABLE sent      \* the places of the copies whose answers the member awaits
SentOK == sent \subseteq 1..Len(log)

VARIABLE done      \* the places of the records that the member consumed or sent back
DoneOK == done \subseteq 1..safe

VARIABLE consumed  \* history: the places of the records whose last call of the listener succeeded
ConsumedOK == consumed \subseteq 1..safe

VARIABLE faults    \* history: how many faults there were
FaultsOK == faults \in Nat

broker == <<log, safe, moved, now>>
member == <<calls, failed, sent, done, consumed>>
vars == <<broker, member, faults>>

TypeOK ==
    /\ LogOK /\ SafeOK /\ MovedOK /\ NowOK
    /\ CallsOK /\ FailedOK /\ SentOK /\ DoneOK /\ ConsumedOK /\ FaultsOK

Init ==
    /\ log = <<>>
    /\ safe = 0
    /\ moved = {}
    /\ now = 0
    /\ calls = {}
    /\ failed = {}
    /\ sent = {}
    /\ done = {}
    /\ consumed = {}
    /\ faults = 0

-----------------------------------------------------------------------------
(* The ladder *)

Min(a, b) == IF a < b THEN a ELSE b

\* The level of the retry with this number, from 1.
Level(retry) == Min(retry, LevelMax)

\* A higher level has a longer delay.
Delay(retry) == Level(retry)

Original(m) == [kind |-> "topic", of |-> m, times |-> 0, from |-> 0, at |-> 0, due |-> 0]

\* What the broker stores for a message that was sent back.
Copy(i) ==
    LET retry == log[i].times + 1
        dead == log[i].times >= RetriesMax
    IN [kind |-> IF dead THEN "dead" ELSE "delay", of |-> log[i].of, times |-> retry, from |-> i,
        at |-> IF dead THEN 0 ELSE now, due |-> IF dead THEN 0 ELSE now + Delay(retry)]

Retried(i) == [kind |-> "retry", of |-> log[i].of, times |-> log[i].times, from |-> i, at |-> now, due |-> 0]

\* The records that the member reads.
InQueue(i) == log[i].kind \in {"topic", "retry"}

-----------------------------------------------------------------------------
(* The broker *)

\* A message is stored in the topic.
Send(m) ==
    /\ \A i \in 1..Len(log) : log[i].of # m
    /\ log' = Append(log, Original(m))
    /\ UNCHANGED <<safe, moved, now, member, faults>>

\* The log is flushed and replicated.
Secure ==
    /\ safe < Len(log)
    /\ safe' = Len(log)
    /\ UNCHANGED <<log, moved, now, member, faults>>

Waits(i) == log[i].kind = "delay" /\ i \notin moved

\* A delay level delivers its copies in their order.
FirstOfLevel(i) == \A j \in 1..i - 1 : ~(Waits(j) /\ Level(log[j].times) = Level(log[i].times))

\* A delayed copy is due, and is stored in the retry topic. The put does not wait until it is safe.
Move(i) ==
    /\ i \in 1..safe
    /\ Waits(i)
    /\ FirstOfLevel(i)
    /\ log[i].due <= now
    /\ log' = Append(log, Retried(i))
    /\ moved' = moved \cup {i}
    /\ UNCHANGED <<safe, now, member, faults>>

Tick ==
    /\ \E i \in 1..safe : Waits(i) /\ log[i].due > now
    /\ now' = now + 1
    /\ UNCHANGED <<log, safe, moved, member, faults>>

\* The progress of the levels is written to its file after the log was flushed.
Restorable == {i \in moved : \E j \in 1..safe : log[j].kind = "retry" /\ log[j].from = i}

\* The broker crashes, and restarts with what is left of its log. Or the slave takes over. The file of the progress may
\* be old. Requests in progress fail.
Crash(length, old) ==
    /\ length \in safe..Len(log)
    /\ log' = SubSeq(log, 1, length)
    /\ moved' = IF old THEN {} ELSE Restorable
    /\ sent' = {}
    /\ faults' = faults + 1
    /\ UNCHANGED <<safe, now, calls, failed, done, consumed>>

-----------------------------------------------------------------------------
(* The member *)

Begun == calls \cup failed \cup done

\* The records of the same queue that are before a record.
Before(i) == {j \in 1..i - 1 : log[j].kind = log[i].kind}

\* The listener is called. Several calls may run at once, but they begin in the order of the queue.
Deliver(i) ==
    /\ i \in 1..safe
    /\ InQueue(i)
    /\ i \notin Begun
    /\ Before(i) \subseteq Begun
    /\ calls' = calls \cup {i}
    /\ consumed' = consumed \ {i}
    /\ UNCHANGED <<broker, failed, sent, done, faults>>

Succeed(i) ==
    /\ i \in calls
    /\ calls' = calls \ {i}
    /\ done' = done \cup {i}
    /\ consumed' = consumed \cup {i}
    /\ UNCHANGED <<broker, failed, sent, faults>>

Fail(i) ==
    /\ i \in calls
    /\ calls' = calls \ {i}
    /\ failed' = failed \cup {i}
    /\ UNCHANGED <<broker, sent, done, consumed, faults>>

\* The broker stores the copy. The answer must wait until the copy is safe.
SendBack(i) ==
    /\ i \in failed
    /\ \A p \in sent : log[p].from # i
    /\ log' = Append(log, Copy(i))
    /\ sent' = sent \cup {Len(log) + 1}
    /\ UNCHANGED <<safe, moved, now, calls, failed, done, consumed, faults>>

Answered(p) == p \in sent /\ p <= safe

\* The answer is SUCCESS.
Confirm(p) ==
    /\ Answered(p)
    /\ failed' = failed \ {log[p].from}
    /\ done' = done \cup {log[p].from}
    /\ sent' = sent \ {p}
    /\ UNCHANGED <<broker, calls, consumed, faults>>

\* The answer is lost, late or an error. The member sends the message back again.
Lose(p) ==
    /\ p \in sent
    /\ sent' = sent \ {p}
    /\ faults' = faults + 1
    /\ UNCHANGED <<broker, calls, failed, done, consumed>>

\* The offset of a queue is that of the first record that is not done.
Passed == {i \in done : Before(i) \subseteq done}

\* The member ends. The next one begins at the committed offsets, which may be old.
MemberEnds(old) ==
    /\ calls' = {}
    /\ failed' = {}
    /\ sent' = {}
    /\ done' = IF old THEN {} ELSE Passed
    /\ faults' = faults + 1
    /\ UNCHANGED <<broker, consumed>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Places == 1..Len(log)

Next ==
    \/ \E m \in Msgs : Send(m)
    \/ Secure \/ Tick
    \/ \E i \in Places : Move(i) \/ Deliver(i) \/ Succeed(i) \/ Fail(i) \/ SendBack(i) \/ Confirm(i) \/ Lose(i)
    \/ \E length \in 0..Len(log) : \E old \in BOOLEAN : Crash(length, old)
    \/ \E old \in BOOLEAN : MemberEnds(old)

\* The broker flushes, time passes, and copies that are due are moved. The member consumes, its listener returns, and
\* messages that failed are sent back. Faults end.
Secures == WF_vars(Secure)
Ticks == WF_vars(Tick)
Moves == WF_vars(\E i \in Places : Move(i))
Delivers == WF_vars(\E i \in Places : Deliver(i))
Returns == WF_vars(\E i \in Places : Succeed(i) \/ Fail(i))
SendsBack == WF_vars(\E i \in Places : SendBack(i))
FaultsEnd == <>[][UNCHANGED faults]_vars

Fairness == Secures /\ Ticks /\ Moves /\ Delivers /\ Returns /\ SendsBack /\ FaultsEnd

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* How often the message was sent back before this record.
RECURSIVE Retries(_)
Retries(i) == IF i = 0 THEN 0 ELSE Retries(log[i].from) + (IF log[i].kind = "delay" THEN 1 ELSE 0)

\* The record is consumed, a dead letter, still to be read, or still to be moved.
Lives(i) ==
    CASE log[i].kind = "dead" -> TRUE
      [] log[i].kind = "delay" -> i \notin moved
      [] OTHER -> i \in consumed \/ i \notin done

NeverDropped == \A i \in 1..safe : \E j \in Places : log[j].of = log[i].of /\ Lives(j)

\* The k-th retry comes not earlier than the k-th delay after the message was sent back.
DelaysKept ==
    \A i \in Places :
        log[i].kind = "retry" =>
            /\ log[log[i].from].kind = "delay"
            /\ log[i].at >= log[log[i].from].at + (IF Retries(i) < LevelMax THEN Retries(i) ELSE LevelMax)

GivenUpInTime == \A i \in Places : Retries(i) <= RetriesMax /\ (log[i].kind = "dead" => Retries(i) = RetriesMax)

\* DELIV-7: a message that fails is retried with increasing delays, and then dead-lettered; it is never dropped
RetryThenDeadLetter == NeverDropped /\ DelaysKept /\ GivenUpInTime

\* A message whose consumption succeeded is not sent back.
SuccessEnds == consumed \cap (calls \cup failed) = {}

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ calls \cap failed = {} /\ calls \cap done = {} /\ failed \cap done = {}
    /\ \A i \in calls \cup failed \cup done \cup consumed : InQueue(i)
    /\ \A i \in Begun : Before(i) \subseteq Begun
    /\ \A i \in moved : log[i].kind = "delay" /\ i <= safe
    /\ \A p \in sent : log[p].kind \in {"delay", "dead"} /\ log[p].from \in failed
    /\ \A p, r \in sent : log[p].from = log[r].from => p = r
    /\ \A i \in Places :
        /\ log[i].from < i /\ log[i].at <= now
        /\ log[i].kind = "topic" <=> log[i].from = 0
        /\ log[i].due = IF log[i].kind # "delay" THEN 0
                       ELSE log[i].at + (IF log[i].times < LevelMax THEN log[i].times ELSE LevelMax)
        /\ log[i].from # 0 =>
            /\ log[i].of = log[log[i].from].of
            /\ log[i].times = log[log[i].from].times + (IF log[i].kind = "retry" THEN 0 ELSE 1)

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

Added == log'[Len(log')]

Grows == Len(log') = Len(log) + 1 /\ SubSeq(log', 1, Len(log)) = log

\* The log grows by one record, of this time. A crash shortens it, but not the safe prefix.
LogGrows ==
    [][log' # log =>
        \/ Grows /\ Added.at = (IF Added.kind \in {"delay", "retry"} THEN now ELSE 0) /\ UNCHANGED <<safe, now, faults>>
        \/ Len(log') >= safe /\ log' = SubSeq(log, 1, Len(log')) /\ faults' > faults]_vars

\* Each record has its cause.
AddedRightly ==
    [][Grows =>
        CASE Added.kind = "topic" -> (\A i \in Places : log[i].of # Added.of) /\ UNCHANGED <<moved, member>>
          [] Added.kind = "retry" ->
                /\ Added.from \in 1..safe /\ Added.from \notin moved /\ moved' = moved \cup {Added.from}
                /\ \A j \in 1..Added.from - 1 :
                    log[j].kind = "delay" /\ Level(log[j].times) = Level(Added.times) => j \in moved
                /\ UNCHANGED member
          [] OTHER ->
                /\ Added.from \in failed /\ (\A p \in sent : log[p].from # Added.from)
                /\ sent' = sent \cup {Len(log')}
                /\ UNCHANGED <<moved, calls, failed, done, consumed>>]_vars

\* The safe prefix never shrinks. It contains only what was appended.
SafeGrows == [][safe' # safe => safe < safe' /\ safe' = Len(log) /\ UNCHANGED <<log, moved, now, member>>]_vars

\* The progress goes on with copies, and goes back in a crash.
ProgressFollows ==
    [][moved' # moved =>
        \/ Grows
        \/ faults' > faults /\ moved' \in {{}, {i \in moved : \E j \in 1..safe : log[j].kind = "retry" /\ log[j].from = i}}]_vars

\* Time passes up to the next copy that is due, and nothing happens meanwhile.
TimeGrows ==
    [][now' # now =>
        /\ now' = now + 1
        /\ \E i \in 1..safe : log[i].kind = "delay" /\ i \notin moved /\ log[i].due > now
        /\ UNCHANGED <<log, safe, moved, member, faults>>]_vars

\* A call begins, and ends in one of two ways. What failed is done when its copy is safe.
CallsFollow ==
    [][/\ \A i \in calls' \ calls :
            /\ i \notin consumed' /\ UNCHANGED <<failed, done, sent>> /\ calls' = calls \cup {i}
            /\ \A j \in 1..i - 1 : log[j].kind = log[i].kind => j \in calls \cup failed \cup done
       /\ \A i \in calls \ calls' :
            \/ calls' = calls \ {i} /\ i \in failed' /\ UNCHANGED <<done, consumed, faults>>
            \/ calls' = calls \ {i} /\ i \in done' \cap consumed' /\ UNCHANGED <<failed, faults>>
            \/ calls' = {} /\ faults' > faults
       /\ \A i \in done' \ done : i \in calls \/ (i \in failed /\ \E p \in sent \ sent' : p <= safe /\ log[p].from = i)
       /\ \A i \in failed \ failed' : i \in done' \/ faults' > faults
       /\ done \ done' # {} => done' \in {{}, {i \in done : \A j \in 1..i - 1 : log[j].kind = log[i].kind => j \in done}}
       /\ \A i \in consumed \ consumed' : i \in calls']_vars

\* One fault at a time.
FaultsCounted ==
    [][/\ faults' \in {faults, faults + 1}
       /\ faults' > faults => UNCHANGED <<safe, now, consumed>>
       /\ sent \ sent' # {} => faults' > faults \/ (\E p \in sent : sent' = sent \ {p} /\ log[p].from \in done')]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A m \in Msgs : (\A i \in Places : log[i].of # m) => ENABLED (Next /\ Len(log') = Len(log) + 1 /\ Added.of = m)
    /\ safe < Len(log) => ENABLED (Next /\ safe' = Len(log))
    /\ \A i \in 1..safe :
        /\ log[i].kind = "delay" /\ i \notin moved /\ log[i].due > now => ENABLED (Next /\ now' = now + 1)
        /\ log[i].kind = "delay" /\ i \notin moved /\ log[i].due <= now
           /\ (\A j \in 1..i - 1 : log[j].kind = "delay" => j \in moved)
           => ENABLED (Next /\ moved' = moved \cup {i} /\ Added.kind = "retry")
        /\ log[i].kind \in {"topic", "retry"} /\ i \notin calls \cup failed \cup done
           /\ (\A j \in 1..i - 1 : log[j].kind = log[i].kind => j \in calls \cup failed \cup done)
           => ENABLED (Next /\ calls' = calls \cup {i})
    /\ \A i \in calls :
        /\ ENABLED (Next /\ failed' = failed \cup {i})
        /\ ENABLED (Next /\ done' = done \cup {i} /\ consumed' = consumed \cup {i})
    /\ \A i \in failed :
        IF \E p \in sent : log[p].from = i
        THEN \A p \in sent : log[p].from = i /\ p <= safe => ENABLED (Next /\ done' = done \cup {i})
        ELSE ENABLED (Next /\ Len(log') = Len(log) + 1 /\ Added.from = i)
    /\ \A length \in safe..Len(log) : ENABLED (Next /\ faults' = faults + 1 /\ Len(log') = length /\ calls' = calls)
    /\ ENABLED (Next /\ faults' = faults + 1 /\ calls' = {} /\ done' = {} /\ log' = log)
    /\ \A p \in sent : ENABLED (Next /\ faults' = faults + 1 /\ sent' = sent \ {p} /\ calls' = calls)

-----------------------------------------------------------------------------
(* Liveness *)

\* A message is eventually consumed or a dead letter.
FailedEnds ==
    \A m \in Msgs :
        (\E i \in 1..safe : log[i].of = m) ~>
            \E i \in 1..safe : log[i].of = m /\ (i \in consumed \/ log[i].kind = "dead")

===============================================================================
