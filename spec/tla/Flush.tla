-------------------------------- MODULE Flush --------------------------------
(***************************************************************************)
(* How one broker stores messages. It appends them to the commit log in    *)
(* the page cache, makes them durable by fsync, dispatches them to consume *)
(* queues, answers the producer and delivers them. The process or the      *)
(* machine may crash, and the store then recovers.                         *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Bytes: a record is whole or torn; the store's own tests cover sizes, *)
(*    checksums and segment ends.                                          *)
(*  - Pages: a crash of the machine keeps a prefix of the non-durable      *)
(*    records, because recovery stops at the first hole and everything     *)
(*    after a hole is lost.                                                *)
(*  - Truncation: bytes after a cut never reappear, because our store      *)
(*    zeroes and syncs them before it continues.                           *)
(*  - Time: the checkpoint is a position in the log, not a timestamp.      *)
(*  - Producers: a message is sent once; Delivery models retries.          *)
(*  - Consumers: one, which survives the broker's crashes.                 *)
(*  - Honest disks: data is durable when fsync has returned; lying and     *)
(*    failing disks need a separate model.                                 *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Messages,   \* the messages that producers may send, strings
    Queues,     \* the queues of one topic, strings
    FlushModes  \* the modes to explore, a subset of {"SYNC_FLUSH", "ASYNC_FLUSH"}

ASSUME /\ FlushModes \subseteq {"SYNC_FLUSH", "ASYNC_FLUSH"}
       /\ FlushModes # {} /\ Queues # {} /\ "torn" \notin Messages

-----------------------------------------------------------------------------
(* Records *)

Records == [message : Messages, queue : Queues, offset : Nat]

Torn == [message |-> "torn", queue |-> "torn", offset |-> 0] \* the remains of a partly written record after a crash

Prefix(sequence, length) == SubSeq(sequence, 1, length)

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

Min(a, b) == IF a < b THEN a ELSE b

Max(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n \* of a non-empty set

-----------------------------------------------------------------------------
(* State *)

VARIABLE mode         \* flushDiskType; never changes
ModeOK == mode \in FlushModes

VARIABLE phase        \* the state of the broker process
PhaseOK == phase \in {"running", "down", "log_recovered", "dispatching"}

VARIABLE log          \* the commit log as a reader of the files sees it: page cache over disk
LogOK == log \in Seq(Records \cup {Torn})

VARIABLE flushed      \* how many records of the log are durable
FlushedOK == flushed \in 0..Len(log)

VARIABLE queue        \* the consume queues, page cache over disk: positions in the log
QueueOK == queue \in [Queues -> Seq(Nat)]

VARIABLE queueFlushed \* the number of durable entries of each queue
QueueFlushedOK == \A q \in Queues : queueFlushed[q] \in 0..Len(queue[q])

VARIABLE checkpoint   \* the checkpoint file: all queue entries of the log up to here are durable
CheckpointOK == checkpoint \in Nat

VARIABLE abort        \* the abort file exists: the last exit was not clean
AbortOK == abort \in BOOLEAN

VARIABLE persisted    \* the consumer offsets in their file
PersistedOK == persisted \in [Queues -> Nat]

VARIABLE dispatched   \* memory: the number of log records that the dispatcher has processed
DispatchedOK == dispatched \in 0..Len(log)

VARIABLE nextOffset   \* memory: the offset that the next message of a queue will get
NextOffsetOK == nextOffset \in [Queues -> Nat]

VARIABLE committed    \* memory: the consumer offsets
CommittedOK == committed \in [Queues -> Nat]

VARIABLE answer       \* the status of each message, as its producer knows it
Answers == {"unsent", "waiting", "SEND_OK", "FLUSH_DISK_TIMEOUT", "unknown"}
AnswerOK == answer \in [Messages -> Answers]

VARIABLE seen         \* the messages delivered to the consumer, by queue; the length is the next offset to pull
SeenOK == seen \in [Queues -> Seq(Messages \cup {"torn"})]

VARIABLE appended     \* history: the log as it was before the last crash
AppendedOK == appended \in Seq(Records)

VARIABLE crashes      \* history: the number of crashes of the process, and of the whole system
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
(* The running broker; the actions follow a message from append to dispatch *)

Position(m) == CHOOSE i \in 1..Len(log) : log[i].message = m

NewRecord(m, q) == [message |-> m, queue |-> q, offset |-> nextOffset[q]]

\* The record is in the page cache, and its offset in the queue is assigned.
AppendRecord(m, q) ==
    /\ phase = "running"
    /\ answer[m] = "unsent"
    /\ log' = log \o <<NewRecord(m, q)>>
    /\ appended' = log'
    /\ nextOffset' = [nextOffset EXCEPT ![q] = @ + 1]
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<mode, phase, flushed, queueFiles, checkpoint, abort, persisted, dispatched, committed, seen, crashes>>

\* An fsync that began when the log was n records long returns.
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

\* The fsync took longer than syncFlushTimeout. The record remains in the log and may become durable later.
AnswerTimeout(m) ==
    /\ phase = "running"
    /\ answer[m] = "waiting"
    /\ mode = "SYNC_FLUSH" /\ Position(m) > flushed
    /\ answer' = [answer EXCEPT ![m] = "FLUSH_DISK_TIMEOUT"]
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>

\* Under SYNC_FLUSH, no consumer sees a record that a crash could still remove (as released since 5.3).
DispatchLimit == IF mode = "SYNC_FLUSH" THEN flushed ELSE Len(log)

\* Adds the entry of the next log record to its consume queue.
Dispatch ==
    /\ phase = "running"
    /\ dispatched < DispatchLimit
    /\ queue' = [queue EXCEPT ![log[dispatched + 1].queue] = Append(@, dispatched + 1)]
    /\ dispatched' = dispatched + 1
    /\ UNCHANGED <<mode, phase, logFiles, queueFlushed, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

EntriesUpTo(q, n) == Cardinality({i \in 1..Len(queue[q]) : queue[q][i] <= n})

\* An fsync of the queues that began after n dispatched records returns.
FlushQueues(n) ==
    /\ phase = "running"
    /\ n \in 1..dispatched
    /\ queueFlushed' = [q \in Queues |-> Max({queueFlushed[q], EntriesUpTo(q, n)})]
    /\ queueFlushed' # queueFlushed
    /\ UNCHANGED <<mode, phase, logFiles, queue, checkpoint, abort, persisted, memory, clients, history>>

\* The last log position up to which all records and all their queue entries are durable.
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

\* A pull beyond the end of the queue (PULL_OFFSET_MOVED): the consumer moves back to the end.
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
(* Shutdown and crashes *)

\* The process has ended. Its memory is lost, and waiting producers get no answer.
LoseMemory ==
    /\ phase' = "down"
    /\ dispatched' = 0 /\ nextOffset' = Zero /\ committed' = persisted
    /\ answer' = [m \in Messages |-> IF answer[m] = "waiting" THEN "unknown" ELSE answer[m]]
    /\ UNCHANGED <<mode, checkpoint, abort, persisted, seen, appended>>

\* The last step of a clean exit: everything is durable, and the abort file is deleted.
Shutdown ==
    /\ phase = "running"
    /\ \A m \in Messages : answer[m] # "waiting"
    /\ flushed = Len(log) /\ dispatched = Len(log) /\ checkpoint = Len(log)
    /\ \A q \in Queues : queueFlushed[q] = Len(queue[q])
    /\ persisted = committed
    /\ phase' = "down" /\ abort' = FALSE
    /\ dispatched' = 0 /\ nextOffset' = Zero
    /\ UNCHANGED <<mode, logFiles, queueFiles, checkpoint, persisted, committed, clients, history>>

\* SIGKILL: the page cache survives.
ProcessCrash ==
    /\ phase # "down"
    /\ LoseMemory
    /\ crashes' = [crashes EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<logFiles, queueFiles>>

\* After a system crash the files contain n records, possibly followed by a torn record, and kept[q] entries
\* of each queue.
SystemCrash(n, torn, kept) ==
    /\ n \in flushed..Len(log)
    /\ torn => n < Len(log)
    /\ \A q \in Queues : kept[q] \in queueFlushed[q]..Len(queue[q])
    /\ LoseMemory
    /\ log' = Prefix(log, n) \o (IF torn THEN <<Torn>> ELSE <<>>)
    /\ queue' = [q \in Queues |-> Prefix(queue[q], kept[q])]
    /\ crashes' = [crashes EXCEPT !.system = @ + 1]
    /\ UNCHANGED <<flushed, queueFlushed>>

\* The operating system crashes, at any time. Any part of the page cache may have been written to disk.
OsCrash(n, torn, kept) == SystemCrash(n, torn, kept)

\* The power fails, at any time. The whole page cache is lost.
PowerLoss == SystemCrash(flushed, FALSE, queueFlushed)

-----------------------------------------------------------------------------
(* Recovery. A crash may occur between any two steps; recovery then restarts from the beginning *)

WholeLog == SelectSeq(log, LAMBDA record : record # Torn)

LastQueued(q) == IF queue[q] = <<>> THEN 0 ELSE queue[q][Len(queue[q])]

\* After an unclean exit, queue entries may be missing from the checkpoint on. After a clean exit no entry is
\* missing.
DispatchFrom == IF abort THEN checkpoint ELSE Max({LastQueued(q) : q \in Queues})

RecoveredLog == WholeLog

\* Removes the torn record. The remaining log is synced before it counts as flushed.
RecoverLog ==
    /\ phase = "down"
    /\ phase' = "log_recovered"
    /\ log' = RecoveredLog
    /\ flushed' = Len(log')
    /\ dispatched' = Min(DispatchFrom, Len(log'))
    /\ UNCHANGED <<mode, queueFiles, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

PointsIntoLog(p) == p <= Len(log)

\* Removes entries that point beyond the log.
TruncateQueues ==
    /\ phase = "log_recovered"
    /\ phase' = "dispatching"
    /\ queue' = [q \in Queues |-> SelectSeq(queue[q], PointsIntoLog)]
    /\ queueFlushed' = [q \in Queues |-> Min(queueFlushed[q], Len(queue'[q]))]
    /\ UNCHANGED <<mode, logFiles, checkpoint, abort, persisted, memory, clients, history>>

\* Dispatches each record again. An entry that exists already is not written twice.
Redispatch ==
    /\ phase = "dispatching"
    /\ dispatched < Len(log)
    /\ LET p == dispatched + 1
           q == log[p].queue
       IN  queue' = IF p > LastQueued(q) THEN [queue EXCEPT ![q] = Append(@, p)] ELSE queue
    /\ dispatched' = dispatched + 1
    /\ UNCHANGED <<mode, phase, logFiles, queueFlushed, checkpoint, abort, persisted, nextOffset, committed, clients, history>>

RebuiltOffset(q) == Len(queue[q])

\* Rebuilds the table of next offsets from the queues and writes the abort file. The broker then serves.
Start ==
    /\ phase = "dispatching"
    /\ dispatched = Len(log)
    /\ phase' = "running"
    /\ abort' = TRUE
    /\ nextOffset' = [q \in Queues |-> RebuiltOffset(q)]
    /\ appended' = log
    /\ UNCHANGED <<mode, logFiles, queueFiles, checkpoint, persisted, dispatched, committed, clients, crashes>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Serve ==
    \/ \E m \in Messages, q \in Queues : AppendRecord(m, q)
    \/ \E n \in 1..Len(log) : FlushLog(n) \/ FlushQueues(n)
    \/ \E m \in Messages : AnswerOk(m) \/ AnswerTimeout(m)
    \/ Dispatch \/ WriteCheckpoint

Consume ==
    \/ \E q \in Queues : Deliver(q) \/ CorrectOffset(q) \/ CommitOffset(q)
    \/ PersistOffsets

Recover == RecoverLog \/ TruncateQueues \/ Redispatch \/ Start

recovery == <<phase, dispatched>> \* a step of Recover changes one of these

Crash ==
    \/ ProcessCrash
    \/ \E n \in 0..Len(log), torn \in BOOLEAN, kept \in [Queues -> 0..Cardinality(Messages)] : OsCrash(n, torn, kept)
    \/ PowerLoss

Next == Serve \/ Consume \/ Shutdown \/ Recover \/ Crash

\* The broker flushes, answers and dispatches. The consumer continues to pull. The operator restarts the
\* broker. Each subscript is what the action changes in every step; TLC compares `vars` much slower.
FlushFairness == WF_flushed(\E n \in 1..Len(log) : FlushLog(n))
AnswerFairness == \A m \in Messages : WF_answer(AnswerOk(m))
DispatchFairness == WF_dispatched(Dispatch)
DeliverFairness == \A q \in Queues : SF_seen(Deliver(q)) \* strong: clean restarts may interrupt a pull repeatedly
RecoverFairness == WF_recovery(Recover)

Fairness == FlushFairness /\ AnswerFairness /\ DispatchFairness /\ DeliverFairness /\ RecoverFairness

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Answered(status) == {m \in Messages : answer[m] = status}

InLog(m, length) == \E i \in 1..length : log[i].message = m

QueueRecords(q) == SelectSeq(log, LAMBDA record : record.queue = q)

\* The configured guarantee: ASYNC_FLUSH guarantees nothing after a system crash.
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

\* DELIV-1: the message is in the log, and no consumer has passed its offset without seeing it
NoAckedLost ==
    phase = "running" /\ Promised =>
        \A m \in Answered("SEND_OK") :
            \E i \in 1..Len(log) :
                /\ log[i].message = m
                /\ Len(seen[log[i].queue]) > log[i].offset => seen[log[i].queue][log[i].offset + 1] = m

\* DELIV-2
NoPhantom ==
    \A q \in Queues : \A i \in 1..Len(seen[q]) : seen[q][i] \in Messages /\ answer[seen[q][i]] # "unsent"

\* DELIV-4: the consumer sees the messages of the queue, in the queue's order
QueueOrder ==
    phase = "running" /\ Promised =>
        \A q \in Queues :
            /\ Len(seen[q]) <= Len(QueueRecords(q))
            /\ \A i \in 1..Len(seen[q]) : seen[q][i] = QueueRecords(q)[i].message

\* DELIV-5: between two starts of the broker, offsets decrease only by a correction, of which the consumer is
\* informed. UNCHANGED comes first, here and below, only because it takes TLC less time.
OffsetMonotone ==
    [][UNCHANGED committed \/
        (phase = "running" /\ phase' = "running" =>
            \A q \in Queues : committed'[q] >= committed[q] \/ CorrectOffset(q))]_vars

-----------------------------------------------------------------------------
(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is made. *)

AppendedOnce == \A m \in Messages : Cardinality({i \in 1..Len(log) : log[i].message = m}) <= 1

\* While the broker runs, its abort file exists, and its log is the recovered log plus the appended records.
RunningMarked == phase = "running" => abort /\ appended = log

\* After the process has ended, its memory is empty and no producer waits for it.
MemoryLost ==
    phase = "down" =>
        /\ dispatched = 0 /\ nextOffset = Zero /\ committed = persisted
        /\ Answered("waiting") = {}

\* Without an abort file, everything is durable.
CleanExitDurable ==
    ~abort => flushed = Len(log) /\ checkpoint = Len(log) /\ \A q \in Queues : queueFlushed[q] = Len(queue[q])

\* A recovered log is durable before it is used.
RecoveredDurable == phase \in {"log_recovered", "dispatching"} => flushed = Len(log)

\* The checkpoint covers only durable records and queue entries.
CheckpointSound ==
    /\ checkpoint <= flushed
    /\ phase = "running" =>
        \A q \in Queues : \A i \in 1..Len(queue[q]) : queue[q][i] <= checkpoint => i <= queueFlushed[q]

\* Each dispatched record has its queue entry.
DispatchedQueued ==
    phase \in {"dispatching", "running"} =>
        \A p \in 1..dispatched : \E i \in 1..Len(queue[log[p].queue]) : queue[log[p].queue][i] = p

\* Every step that is due is enabled: nothing waits for an impossible step.
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

\* A message is answered once, while its producer waits.
AnsweredOnce ==
    [][UNCHANGED answer \/ \A m \in Messages :
        answer'[m] # answer[m] => answer[m] = IF answer'[m] = "waiting" THEN "unsent" ELSE "waiting"]_vars

\* A timeout means that the record is not durable yet.
TimeoutNotDurable ==
    [][UNCHANGED answer \/ \A m \in Messages :
        answer'[m] = "FLUSH_DISK_TIMEOUT" /\ answer[m] # answer'[m] =>
            mode = "SYNC_FLUSH" /\ Position(m) > flushed]_vars

\* A broker that does not run serves no client. Only recovery writes its files.
SilentUntilStarted ==
    [][phase # "running" =>
        /\ UNCHANGED <<checkpoint, persisted, answer, seen, committed>>
        /\ phase' = phase => UNCHANGED <<flushed, queueFlushed>>]_vars

\* A committed offset is the consumer's position: after the delivered messages, or where a correction set it.
CommittedDelivered ==
    [][UNCHANGED committed \/
        (phase' = "running" => \A q \in Queues : committed'[q] # committed[q] => committed'[q] = Len(seen'[q]))]_vars

\* Only a consumer beyond the end is moved back, and it is moved to the end.
CorrectedToTheEnd ==
    [][UNCHANGED seen \/ \A q \in Queues :
        Len(seen'[q]) < Len(seen[q]) => Len(seen'[q]) = Len(queue[q]) /\ committed'[q] = Len(queue[q])]_vars

\* After an exit without a crash, a later crash cannot remove anything.
CleanExit ==
    [][phase = "running" /\ phase' = "down" /\ crashes' = crashes =>
        ~abort' /\ persisted = committed /\ Answered("waiting") = {}]_vars

\* A crash counts once. A process crash changes no file. A system crash removes only data that is not durable.
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
