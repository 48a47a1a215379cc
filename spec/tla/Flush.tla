-------------------------------- MODULE Flush --------------------------------
(***************************************************************************)
(* How one broker keeps messages: they are appended to the commit log in   *)
(* the page cache, made durable by fsync, dispatched to consume queues,    *)
(* answered, delivered; the process or the machine crashes; the store      *)
(* recovers.                                                               *)
(*                                                                         *)
(* Abstracted away, one sentence each:                                     *)
(*  - Bytes: a record is whole or torn; where bytes matter (sizes, CRC,    *)
(*    segment ends) is the business of the store's own tests.              *)
(*  - Pages: the machine's crash keeps a prefix of what was not yet        *)
(*    durable, because recovery stops at the first hole and what lies      *)
(*    behind a hole is as good as lost.                                    *)
(*  - Truncation: bytes behind a cut never come back, because our store    *)
(*    zeroes and syncs them before it goes on.                             *)
(*  - Time: the checkpoint is a position in the log, not a timestamp.      *)
(*  - Producers: a message is sent once; retries belong to Delivery.       *)
(*  - Consumers: one, which survives the broker's crashes.                 *)
(*  - Honest disks: fsync that returned is durable; the disk that lies or  *)
(*    fails is a model of its own.                                         *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Messages,   \* what producers may send, strings
    Queues,     \* the queues of one topic, strings
    FlushModes  \* the modes to explore, a subset of {"SYNC_FLUSH", "ASYNC_FLUSH"}

ASSUME /\ FlushModes \subseteq {"SYNC_FLUSH", "ASYNC_FLUSH"}
       /\ FlushModes # {} /\ Queues # {} /\ "torn" \notin Messages

-----------------------------------------------------------------------------
(* Records *)

Records == [message : Messages, queue : Queues, offset : Nat]

Torn == [message |-> "torn", queue |-> "torn", offset |-> 0] \* what a crash may leave of the record being written out

Prefix(sequence, length) == SubSeq(sequence, 1, length)

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

Min(a, b) == IF a < b THEN a ELSE b

Max(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n \* of a set that is not empty

-----------------------------------------------------------------------------
(* State *)

VARIABLE mode         \* flushDiskType; never changes
ModeOK == mode \in FlushModes

VARIABLE phase        \* what the broker process is doing
PhaseOK == phase \in {"running", "down", "log_recovered", "dispatching"}

VARIABLE log          \* the commit log as a reader of the files sees it: page cache over disk
LogOK == log \in Seq(Records \cup {Torn})

VARIABLE flushed      \* how many records of the log are durable
FlushedOK == flushed \in 0..Len(log)

VARIABLE queue        \* the consume queues, page cache over disk: positions in the log
QueueOK == queue \in [Queues -> Seq(Nat)]

VARIABLE queueFlushed \* how many entries of each queue are durable
QueueFlushedOK == \A q \in Queues : queueFlushed[q] \in 0..Len(queue[q])

VARIABLE checkpoint   \* the checkpoint file: all queue entries of the log up to here are durable
CheckpointOK == checkpoint \in Nat

VARIABLE abort        \* the abort file is there: the last exit was not clean
AbortOK == abort \in BOOLEAN

VARIABLE persisted    \* the consumer offsets in their file
PersistedOK == persisted \in [Queues -> Nat]

VARIABLE dispatched   \* memory: how much of the log the dispatcher has been through
DispatchedOK == dispatched \in 0..Len(log)

VARIABLE nextOffset   \* memory: the offset that the next message of a queue will get
NextOffsetOK == nextOffset \in [Queues -> Nat]

VARIABLE committed    \* memory: the consumer offsets
CommittedOK == committed \in [Queues -> Nat]

VARIABLE answer       \* what the producer knows of each message
Answers == {"unsent", "waiting", "SEND_OK", "FLUSH_DISK_TIMEOUT", "unknown"}
AnswerOK == answer \in [Messages -> Answers]

VARIABLE seen         \* what the consumer was delivered, by queue; its length is the next offset to pull
SeenOK == seen \in [Queues -> Seq(Messages \cup {"torn"})]

VARIABLE appended     \* history: the log as it was before the last crash
AppendedOK == appended \in Seq(Records)

VARIABLE crashes      \* history: how often the process, and how often the whole system went down
CrashesOK == crashes \in [process : Nat, system : Nat]

logFiles == <<log, flushed>>
queueFiles == <<queue, queueFlushed>>
memory == <<dispatched, nextOffset, committed>>
clients == <<answer, seen>>
history == <<appended, crashes>>
vars == <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, clients, history>>

TypeOK ==
    /\ ModeOK /\ PhaseOK /\ LogOK /\ FlushedOK /\ QueueOK /\ QueueFlushedOK /\ CheckpointOK /\ AbortOK
    /\ PersistedOK /\ DispatchedOK /\ NextOffsetOK /\ CommittedOK /\ AnswerOK /\ SeenOK /\ AppendedOK /\ CrashesOK

Zero == [q \in Queues |-> 0]

Init ==
    /\ mode \in FlushModes
    /\ phase = "running"
    /\ log = <<>> /\ flushed = 0
    /\ queue = [q \in Queues |-> <<>>] /\ queueFlushed = Zero
    /\ checkpoint = 0
    /\ abort = TRUE
    /\ persisted = Zero
    /\ dispatched = 0 /\ nextOffset = Zero /\ committed = Zero
    /\ answer = [m \in Messages |-> "unsent"]
    /\ seen = [q \in Queues |-> <<>>]
    /\ appended = <<>>
    /\ crashes = [process |-> 0, system |-> 0]

-----------------------------------------------------------------------------
(* The broker at work, in the order of a message's life *)

Position(m) == CHOOSE i \in 1..Len(log) : log[i].message = m

NewRecord(m, q) == [message |-> m, queue |-> q, offset |-> nextOffset[q]]

\* The record is in the page cache; its offset in the queue is taken.
AppendRecord(m, q) ==
    /\ phase = "running"
    /\ answer[m] = "unsent"
    /\ log' = log \o <<NewRecord(m, q)>>
    /\ appended' = log'
    /\ nextOffset' = [nextOffset EXCEPT ![q] = @ + 1]
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<mode, phase, flushed, queueFiles, checkpoint, abort, persisted, dispatched, committed, seen, crashes>>

\* An fsync returns that began when the log was n records long.
FlushLog(n) ==
    /\ phase = "running"
    /\ n \in (flushed + 1)..Len(log)
    /\ flushed' = n
    /\ UNCHANGED <<mode, phase, log, queueFiles, checkpoint, abort, persisted, memory, clients, history>>

\* Under SYNC_FLUSH an answer waits for the fsync that covers its message.
MayAnswer(m) == mode = "SYNC_FLUSH" => Position(m) <= flushed

AnswerOk(m) ==
    /\ phase = "running"
    /\ answer[m] = "waiting"
    /\ MayAnswer(m)
    /\ answer' = [answer EXCEPT ![m] = "SEND_OK"]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>

\* The fsync took longer than syncFlushTimeout. The record stays and may become durable later.
AnswerTimeout(m) ==
    /\ phase = "running"
    /\ answer[m] = "waiting"
    /\ mode = "SYNC_FLUSH" /\ Position(m) > flushed
    /\ answer' = [answer EXCEPT ![m] = "FLUSH_DISK_TIMEOUT"]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>

\* Under SYNC_FLUSH nobody sees a record that a crash could take back (as released since 5.3).
DispatchLimit == IF mode = "SYNC_FLUSH" THEN flushed ELSE Len(log)

\* The next record of the log gets its entry in its consume queue.
Dispatch ==
    /\ phase = "running"
    /\ dispatched < DispatchLimit
    /\ queue' = [queue EXCEPT ![log[dispatched + 1].queue] = Append(@, dispatched + 1)]
    /\ dispatched' = dispatched + 1
    /\ UNCHANGED <<mode, phase, logFiles, queueFlushed, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

EntriesUpTo(q, n) == Cardinality({i \in 1..Len(queue[q]) : queue[q][i] <= n})

\* An fsync of the queues returns that began when n records had been dispatched.
FlushQueues(n) ==
    /\ phase = "running"
    /\ n \in 1..dispatched
    /\ queueFlushed' = [q \in Queues |-> Max({queueFlushed[q], EntriesUpTo(q, n)})]
    /\ queueFlushed' # queueFlushed
    /\ UNCHANGED <<mode, phase, logFiles, queue, checkpoint, abort, persisted, memory, clients, history>>

\* Everything of the log up to this position is durable, and so are its queue entries.
DurablePosition ==
    Max({p \in 0..Min(flushed, dispatched) :
            \A q \in Queues : \A i \in 1..Len(queue[q]) : queue[q][i] <= p => i <= queueFlushed[q]})

WriteCheckpoint ==
    /\ phase = "running"
    /\ DurablePosition > checkpoint
    /\ checkpoint' = DurablePosition
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, abort, persisted, memory, clients, history>>

-----------------------------------------------------------------------------
(* The consumer *)

\* A pull returns the record at the consumer's next offset.
Deliver(q) ==
    /\ phase = "running"
    /\ Len(seen[q]) < Len(queue[q])
    /\ seen' = [seen EXCEPT ![q] = Append(@, log[queue[q][Len(@) + 1]].message)]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, answer, history>>

\* A pull beyond the end of the queue (PULL_OFFSET_MOVED): the consumer goes back to the end.
CorrectOffset(q) ==
    /\ phase = "running"
    /\ Len(seen[q]) > Len(queue[q])
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, Len(queue[q]))]
    /\ committed' = [committed EXCEPT ![q] = Len(queue[q])]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, dispatched, nextOffset, answer, history>>

CommitOffset(q) ==
    /\ phase = "running"
    /\ committed[q] < Len(seen[q])
    /\ committed' = [committed EXCEPT ![q] = Len(seen[q])]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, dispatched, nextOffset, clients, history>>

PersistOffsets ==
    /\ phase = "running"
    /\ persisted # committed
    /\ persisted' = committed
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, memory, clients, history>>

-----------------------------------------------------------------------------
(* Ends of a broker's life *)

\* The process is gone: its memory is lost, whoever waited knows nothing.
LoseMemory ==
    /\ phase' = "down"
    /\ dispatched' = 0 /\ nextOffset' = Zero /\ committed' = persisted
    /\ answer' = [m \in Messages |-> IF answer[m] = "waiting" THEN "unknown" ELSE answer[m]]
    /\ UNCHANGED <<mode, checkpoint, abort, persisted, seen, appended>>

\* A clean exit, the last step of it: everything is durable, the abort file is deleted.
Shutdown ==
    /\ phase = "running"
    /\ \A m \in Messages : answer[m] # "waiting"
    /\ flushed = Len(log) /\ dispatched = Len(log) /\ checkpoint = Len(log)
    /\ \A q \in Queues : queueFlushed[q] = Len(queue[q])
    /\ persisted = committed
    /\ phase' = "down" /\ abort' = FALSE
    /\ dispatched' = 0 /\ nextOffset' = Zero
    /\ UNCHANGED <<mode, logFiles, queueFiles, checkpoint, persisted, committed, clients, history>>

\* SIGKILL: the page cache lives on.
ProcessCrash ==
    /\ phase # "down"
    /\ LoseMemory
    /\ crashes' = [crashes EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<logFiles, queueFiles>>

\* What a system crash leaves of the files: n records and perhaps a torn one, and kept[q] entries of each queue.
SystemCrash(n, torn, kept) ==
    /\ LoseMemory
    /\ n \in flushed..Len(log)
    /\ torn => n < Len(log)
    /\ \A q \in Queues : kept[q] \in queueFlushed[q]..Len(queue[q])
    /\ log' = Prefix(log, n) \o (IF torn THEN <<Torn>> ELSE <<>>)
    /\ queue' = [q \in Queues |-> Prefix(queue[q], kept[q])]
    /\ crashes' = [crashes EXCEPT !.system = @ + 1]
    /\ UNCHANGED <<flushed, queueFlushed>>

\* The operating system dies, at any time: it may have written out any part of the page cache.
OsCrash(n, torn, kept) == SystemCrash(n, torn, kept)

\* The power fails, at any time: nothing of the page cache is left.
PowerLoss == SystemCrash(flushed, FALSE, queueFlushed)

-----------------------------------------------------------------------------
(* Recovery; a crash may fall between any two steps, and it begins anew *)

WholeLog == SelectSeq(log, LAMBDA record : record # Torn)

LastQueued(q) == IF queue[q] = <<>> THEN 0 ELSE queue[q][Len(queue[q])]

\* After an unclean exit the checkpoint tells from where queue entries may be missing; after a clean one none is.
DispatchFrom == IF abort THEN checkpoint ELSE Max({LastQueued(q) : q \in Queues})

RecoveredLog == WholeLog

\* The torn record is cut off, and what is left is synced before it counts as flushed.
RecoverLog ==
    /\ phase = "down"
    /\ phase' = "log_recovered"
    /\ log' = RecoveredLog
    /\ flushed' = Len(log')
    /\ dispatched' = Min(DispatchFrom, Len(log'))
    /\ UNCHANGED <<mode, queueFiles, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

PointsIntoLog(p) == p <= Len(log)

\* Entries that point beyond the log are cut off.
TruncateQueues ==
    /\ phase = "log_recovered"
    /\ phase' = "dispatching"
    /\ queue' = [q \in Queues |-> SelectSeq(queue[q], PointsIntoLog)]
    /\ queueFlushed' = [q \in Queues |-> Min(queueFlushed[q], Len(queue'[q]))]
    /\ UNCHANGED <<mode, logFiles, checkpoint, abort, persisted, memory, clients, history>>

\* Each record is dispatched again; an entry that is there already is not written twice.
Redispatch ==
    /\ phase = "dispatching"
    /\ dispatched < Len(log)
    /\ LET p == dispatched + 1
           q == log[p].queue
       IN  queue' = IF p > LastQueued(q) THEN [queue EXCEPT ![q] = Append(@, p)] ELSE queue
    /\ dispatched' = dispatched + 1
    /\ UNCHANGED <<mode, phase, logFiles, queueFlushed, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

RebuiltOffset(q) == Len(queue[q])

\* The table of next offsets is rebuilt from the queues, the abort file is written, the broker serves.
Start ==
    /\ phase = "dispatching"
    /\ dispatched = Len(log)
    /\ phase' = "running"
    /\ abort' = TRUE
    /\ nextOffset' = [q \in Queues |-> RebuiltOffset(q)]
    /\ appended' = log
    /\ UNCHANGED <<mode, logFiles, queueFiles, checkpoint, persisted, dispatched, committed, clients, crashes>>

-----------------------------------------------------------------------------
(* The whole *)

Serve ==
    \/ \E m \in Messages, q \in Queues : AppendRecord(m, q)
    \/ \E n \in 1..Len(log) : FlushLog(n) \/ FlushQueues(n)
    \/ \E m \in Messages : AnswerOk(m) \/ AnswerTimeout(m)
    \/ Dispatch \/ WriteCheckpoint

Consume ==
    \/ \E q \in Queues : Deliver(q) \/ CorrectOffset(q) \/ CommitOffset(q)
    \/ PersistOffsets

Recover == RecoverLog \/ TruncateQueues \/ Redispatch \/ Start

Crash ==
    \/ ProcessCrash
    \/ \E n \in 0..Len(log), torn \in BOOLEAN, kept \in [Queues -> 0..Cardinality(Messages)] : OsCrash(n, torn, kept)
    \/ PowerLoss

Next == Serve \/ Consume \/ Shutdown \/ Recover \/ Crash

\* Somebody flushes, answers and dispatches; the consumer does not give up; the operator starts the broker again.
FlushFairness == WF_vars(\E n \in 1..Len(log) : FlushLog(n))
AnswerFairness == \A m \in Messages : WF_vars(AnswerOk(m))
DispatchFairness == WF_vars(Dispatch)
DeliverFairness == \A q \in Queues : SF_vars(Deliver(q)) \* strong: clean restarts may interrupt a pull again and again
RecoverFairness == WF_vars(Recover)

Fairness == FlushFairness /\ AnswerFairness /\ DispatchFairness /\ DeliverFairness /\ RecoverFairness

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. Names are those of spec/invariants.toml. *)

Answered(status) == {m \in Messages : answer[m] = status}

InLog(m, length) == \E i \in 1..length : log[i].message = m

QueueRecords(q) == SelectSeq(log, LAMBDA record : record.queue = q)

\* What the configured guarantee covers: under ASYNC_FLUSH nothing once the system has gone down.
Promised == mode = "SYNC_FLUSH" \/ crashes.system = 0

\* FLUSH-1
SyncAckedDurable == mode = "SYNC_FLUSH" => \A m \in Answered("SEND_OK") : InLog(m, flushed)

\* FLUSH-2
AsyncAckedSurvivesProcessCrash ==
    mode = "ASYNC_FLUSH" /\ crashes.system = 0 => \A m \in Answered("SEND_OK") : InLog(m, Len(log))

\* FLUSH-3
QueuePointsIntoLog ==
    phase = "running" =>
        \A q \in Queues : \A i \in 1..Len(queue[q]) :
            /\ queue[q][i] \in 1..Len(log)
            /\ log[queue[q][i]].queue = q
            /\ log[queue[q][i]].offset = i - 1

\* FLUSH-4
QueueOffsetsDense ==
    phase = "running" =>
        \A q \in Queues :
            /\ nextOffset[q] = Len(QueueRecords(q))
            /\ \A i \in 1..Len(QueueRecords(q)) : QueueRecords(q)[i].offset = i - 1

\* FLUSH-5
RecoveredPrefix == IsPrefix(IF phase = "down" THEN WholeLog ELSE log, appended)

\* FLUSH-6
IndexRebuildable ==
    phase = "running" =>
        \A q \in Queues :
            queue[q] = SelectSeq([i \in 1..dispatched |-> i], LAMBDA p : log[p].queue = q)

\* DELIV-1: it is there, and no consumer has passed it by
NoAckedLost ==
    phase = "running" /\ Promised =>
        \A m \in Answered("SEND_OK") :
            \E i \in 1..Len(log) :
                /\ log[i].message = m
                /\ Len(seen[log[i].queue]) > log[i].offset => seen[log[i].queue][log[i].offset + 1] = m

\* DELIV-2
NoPhantom == \A q \in Queues : \A i \in 1..Len(seen[q]) : seen[q][i] \in Messages \ Answered("unsent")

\* DELIV-4: what the consumer saw is the queue, in the queue's order
QueueOrder ==
    phase = "running" /\ Promised =>
        \A q \in Queues :
            /\ Len(seen[q]) <= Len(QueueRecords(q))
            /\ \A i \in 1..Len(seen[q]) : seen[q][i] = QueueRecords(q)[i].message

\* DELIV-5: within one life of the broker, but for a correction that the consumer is told of
OffsetMonotone ==
    [][phase = "running" /\ phase' = "running" =>
        \A q \in Queues : committed'[q] >= committed[q] \/ CorrectOffset(q)]_vars

-----------------------------------------------------------------------------
(* Consistency: what the states are and what a step may do, so that a wrong step shows where it is made. *)

AppendedOnce == \A m \in Messages : Cardinality({i \in 1..Len(log) : log[i].message = m}) <= 1

\* While the broker runs, its abort file lies there, and its log is what was recovered and appended.
RunningMarked == phase = "running" => abort /\ appended = log

\* A process that is gone has no memory, and nobody waits for it.
MemoryLost ==
    phase = "down" =>
        /\ dispatched = 0 /\ nextOffset = Zero /\ committed = persisted
        /\ Answered("waiting") = {}

\* Without an abort file nothing was left to be made durable.
CleanExitDurable ==
    ~abort => flushed = Len(log) /\ checkpoint = Len(log) /\ \A q \in Queues : queueFlushed[q] = Len(queue[q])

\* A recovered log is durable before it is used.
RecoveredDurable == phase \in {"log_recovered", "dispatching"} => flushed = Len(log)

\* The checkpoint promises no more than is durable.
CheckpointSound ==
    /\ checkpoint <= flushed
    /\ phase = "running" =>
        \A q \in Queues : \A i \in 1..Len(queue[q]) : queue[q][i] <= checkpoint => i <= queueFlushed[q]

\* Everything that was dispatched has its entry.
DispatchedQueued ==
    phase \in {"dispatching", "running"} =>
        \A p \in 1..dispatched : \E i \in 1..Len(queue[log[p].queue]) : queue[log[p].queue][i] = p

\* What is due can be done: nothing waits for a step that is not possible.
NeverStuck ==
    /\ phase = "running" =>
        /\ flushed < Len(log) => ENABLED FlushLog(Len(log))
        /\ (\E q \in Queues : queueFlushed[q] < Len(queue[q])) => ENABLED FlushQueues(dispatched)
        /\ \A m \in Answered("waiting") :
            IF mode = "ASYNC_FLUSH" \/ Position(m) <= flushed THEN ENABLED AnswerOk(m) ELSE ENABLED AnswerTimeout(m)
        /\ \A q \in Queues : Len(seen[q]) < Len(queue[q]) => ENABLED Deliver(q)
        /\ \A q \in Queues : Len(seen[q]) > Len(queue[q]) => ENABLED CorrectOffset(q)
        /\ \A q \in Queues : committed[q] < Len(seen[q]) => ENABLED CommitOffset(q)
    /\ phase # "down" => ENABLED ProcessCrash
    /\ ENABLED PowerLoss

\* An answer is given once, to somebody who waits.
AnsweredOnce ==
    [][\A m \in Messages :
        answer'[m] # answer[m] => answer[m] = IF answer'[m] = "waiting" THEN "unsent" ELSE "waiting"]_vars

\* A timeout tells that the fsync has not come yet.
TimeoutNotDurable ==
    [][\A m \in Messages :
        answer'[m] = "FLUSH_DISK_TIMEOUT" /\ answer[m] # answer'[m] =>
            mode = "SYNC_FLUSH" /\ Position(m) > flushed]_vars

\* A broker that does not run serves nobody; only recovery writes its files.
SilentUntilStarted ==
    [][phase # "running" =>
        /\ UNCHANGED <<checkpoint, persisted, answer, seen, committed>>
        /\ phase' = phase => UNCHANGED <<flushed, queueFlushed>>]_vars

\* What is committed is how far the consumer was delivered, or sent back.
CommittedDelivered ==
    [][phase' = "running" => \A q \in Queues : committed'[q] # committed[q] => committed'[q] = Len(seen'[q])]_vars

\* Only a consumer beyond the end is sent back, and as far as the end.
CorrectedToTheEnd ==
    [][\A q \in Queues :
        Len(seen'[q]) < Len(seen[q]) => Len(seen'[q]) = Len(queue[q]) /\ committed'[q] = Len(queue[q])]_vars

\* An exit without a crash leaves nothing behind that a crash could take.
CleanExit ==
    [][phase = "running" /\ phase' = "down" /\ crashes' = crashes =>
        ~abort' /\ persisted = committed /\ Answered("waiting") = {}]_vars

\* A crash is one crash; that of the process touches no file, that of the system takes only what is not durable.
CrashTakesVolatile ==
    [][crashes' # crashes =>
        /\ phase' = "down"
        /\ crashes'.process + crashes'.system = crashes.process + crashes.system + 1
        /\ crashes'.process # crashes.process => phase # "down" /\ UNCHANGED <<logFiles, queueFiles>>
        /\ Len(log') <= Len(log) /\ IsPrefix(Prefix(log, flushed), log')
        /\ \A q \in Queues : IsPrefix(Prefix(queue[q], queueFlushed[q]), queue'[q])]_vars

-----------------------------------------------------------------------------
(* Liveness *)

\* FLUSH-7
SendAnswered == \A m \in Messages : answer[m] = "waiting" ~> answer[m] # "waiting"

\* FLUSH-8
RecoveryEnds == phase # "running" ~> phase = "running"

Delivered(m) == \E q \in Queues : \E i \in 1..Len(seen[q]) : seen[q][i] = m

\* DELIV-12
AckedDelivered == \A m \in Messages : answer[m] = "SEND_OK" /\ Promised ~> Delivered(m) \/ ~Promised

=============================================================================
