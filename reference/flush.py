"""How one broker stores messages, action for action as in spec/tla/Flush.tla.

The order is the same: records, state, the running broker, the consumer, the ends of a broker's life,
recovery, safety. The model makes the same abstractions as the TLA+ module. Positions in the log count from 1,
as in TLA+; queue offsets count from 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple

from mqproof.reference.liveness import FIRST, Obligations, leads_to, strong, weak
from mqproof.reference.model import Action, Model, Parameters, by_name, each, named, once
from mqproof.reference.tlc_terms import configuration, operators
from mqproof.reference.updates import replace, with_item

SYNC_FLUSH: Final = "SYNC_FLUSH"
ASYNC_FLUSH: Final = "ASYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class Config:
    messages: tuple[str, ...] = ("m1", "m2")
    queues: tuple[str, ...] = ("q0",)
    flush_modes: tuple[str, ...] = (SYNC_FLUSH, ASYNC_FLUSH)
    crashes_max: int | None = 1
    """The maximum number of process and system crashes, as MCFlush bounds them; None for no bound."""


# Records


class Record(NamedTuple):
    message: str
    queue: str
    offset: int


TORN: Final = Record("torn", "torn", 0)
"""The possible remainder, after a crash, of the record that was being written."""


# State


@dataclass(frozen=True, slots=True)
class State:
    """The state of the model. Tuples by queue and by message are in the order of the configuration."""

    mode: str
    phase: str  # running | down | log_recovered | dispatching
    log: tuple[Record, ...]  # as a reader of the files sees it: page cache over disk
    flushed: int  # durable records
    queue: tuple[tuple[int, ...], ...]  # by queue: positions in the log
    queue_flushed: tuple[int, ...]  # by queue: durable entries
    checkpoint: int  # queue entries of the log up to here are durable
    abort: bool  # whether the abort file exists
    persisted: tuple[int, ...]  # by queue: consumer offsets in their file
    dispatched: int  # memory: the number of records of the log that were dispatched
    next_offset: tuple[int, ...]  # memory, by queue
    committed: tuple[int, ...]  # memory, by queue: consumer offsets
    answer: tuple[str, ...]  # by message: unsent | waiting | SEND_OK | FLUSH_DISK_TIMEOUT | unknown
    seen: tuple[tuple[str, ...], ...]  # by queue: the messages delivered to the consumer
    appended: tuple[Record, ...]  # history: the log before the last crash
    process_crashes: int  # history
    system_crashes: int  # history


def initial(config: Config) -> tuple[State, ...]:
    """Init: one state for each flush mode."""
    zero = (0,) * len(config.queues)
    none: tuple[tuple[Any, ...], ...] = ((),) * len(config.queues)
    return tuple(
        State(
            mode=mode,
            phase="running",
            log=(),
            flushed=0,
            queue=none,
            queue_flushed=zero,
            checkpoint=0,
            abort=True,
            persisted=zero,
            dispatched=0,
            next_offset=zero,
            committed=zero,
            answer=("unsent",) * len(config.messages),
            seen=none,
            appended=(),
            process_crashes=0,
            system_crashes=0,
        )
        for mode in config.flush_modes
    )


# The running broker, in the order of a message's life


def position(state: State, message: str) -> int:
    """Return the position of a message in the log, from 1. Raises StopIteration if it is not there."""
    return next(i for i, record in enumerate(state.log, start=1) if record.message == message)


def append_record(config: Config, state: State, message: str, queue: str) -> State | None:
    """AppendRecord: the record is in the page cache; its offset in the queue is taken."""
    m, q = config.messages.index(message), config.queues.index(queue)
    if state.phase != "running" or state.answer[m] != "unsent":
        return None
    log = (*state.log, Record(message, queue, state.next_offset[q]))
    return replace(
        state,
        log=log,
        appended=log,
        next_offset=with_item(state.next_offset, q, state.next_offset[q] + 1),
        answer=with_item(state.answer, m, "waiting"),
    )


def flush_log(_config: Config, state: State, length: int) -> State | None:
    """FlushLog: an fsync returns that began when the log had `length` records."""
    if state.phase != "running" or not state.flushed < length <= len(state.log):
        return None
    return replace(state, flushed=length)


def may_answer(state: State, message: str) -> bool:
    """MayAnswer: under SYNC_FLUSH an answer waits for the fsync that covers its message."""
    return state.mode != SYNC_FLUSH or position(state, message) <= state.flushed


def answer_ok(config: Config, state: State, message: str) -> State | None:
    """AnswerOk: the send is answered SEND_OK."""
    m = config.messages.index(message)
    if state.phase != "running" or state.answer[m] != "waiting" or not may_answer(state, message):
        return None
    return replace(state, answer=with_item(state.answer, m, "SEND_OK"))


def answer_timeout(config: Config, state: State, message: str) -> State | None:
    """AnswerTimeout: the fsync took longer than syncFlushTimeout; the record stays."""
    m = config.messages.index(message)
    if state.phase != "running" or state.answer[m] != "waiting":
        return None
    if state.mode != SYNC_FLUSH or position(state, message) <= state.flushed:
        return None
    return replace(state, answer=with_item(state.answer, m, "FLUSH_DISK_TIMEOUT"))


def dispatch_limit(state: State) -> int:
    """DispatchLimit: under SYNC_FLUSH a record is not visible while a crash could remove it."""
    return state.flushed if state.mode == SYNC_FLUSH else len(state.log)


def dispatch(config: Config, state: State) -> State | None:
    """Dispatch: the next record of the log gets its entry in its consume queue."""
    if state.phase != "running" or state.dispatched >= dispatch_limit(state):
        return None
    q = config.queues.index(state.log[state.dispatched].queue)
    return replace(
        state,
        queue=with_item(state.queue, q, (*state.queue[q], state.dispatched + 1)),
        dispatched=state.dispatched + 1,
    )


def flush_queues(_config: Config, state: State, length: int) -> State | None:
    """FlushQueues: an fsync of the queues returns that began when `length` records had been dispatched."""
    if state.phase != "running" or length > state.dispatched:
        return None
    queue_flushed = tuple(
        max(flushed, sum(p <= length for p in entries))
        for flushed, entries in zip(state.queue_flushed, state.queue, strict=True)
    )
    return None if queue_flushed == state.queue_flushed else replace(state, queue_flushed=queue_flushed)


def durable_position(state: State) -> int:
    """DurablePosition: the log up to here is durable, and so are its queue entries."""
    limit = min(state.flushed, state.dispatched)
    for entries, flushed in zip(state.queue, state.queue_flushed, strict=True):
        if flushed < len(entries):
            limit = min(limit, entries[flushed] - 1)
    return limit


def write_checkpoint(_config: Config, state: State) -> State | None:
    """WriteCheckpoint: the checkpoint advances to the durable position."""
    if state.phase != "running" or durable_position(state) <= state.checkpoint:
        return None
    return replace(state, checkpoint=durable_position(state))


# The consumer


def deliver(config: Config, state: State, queue: str) -> State | None:
    """Deliver: a pull returns the record at the consumer's next offset."""
    q = config.queues.index(queue)
    seen, entries = state.seen[q], state.queue[q]
    if state.phase != "running" or len(seen) >= len(entries):
        return None
    message = state.log[entries[len(seen)] - 1].message
    return replace(state, seen=with_item(state.seen, q, (*seen, message)))


def correct_offset(config: Config, state: State, queue: str) -> State | None:
    """CorrectOffset: a pull beyond the end of the queue; the consumer goes back to the end."""
    q = config.queues.index(queue)
    end = len(state.queue[q])
    if state.phase != "running" or len(state.seen[q]) <= end:
        return None
    return replace(
        state,
        seen=with_item(state.seen, q, state.seen[q][:end]),
        committed=with_item(state.committed, q, end),
    )


def commit_offset(config: Config, state: State, queue: str) -> State | None:
    """CommitOffset: the consumer commits its offset to the broker's memory."""
    q = config.queues.index(queue)
    if state.phase != "running" or state.committed[q] >= len(state.seen[q]):
        return None
    return replace(state, committed=with_item(state.committed, q, len(state.seen[q])))


def persist_offsets(_config: Config, state: State) -> State | None:
    """PersistOffsets: the broker writes the committed offsets to their file."""
    if state.phase != "running" or state.persisted == state.committed:
        return None
    return replace(state, persisted=state.committed)


# Ends of a broker's life


def _lose_memory(state: State) -> State:
    """LoseMemory: the process has ended; the result of pending sends is unknown."""
    return replace(
        state,
        phase="down",
        dispatched=0,
        next_offset=(0,) * len(state.next_offset),
        committed=state.persisted,
        answer=tuple("unknown" if answer == "waiting" else answer for answer in state.answer),
    )


def shutdown(_config: Config, state: State) -> State | None:
    """Shutdown: the last step of a clean exit; everything is durable, the abort file is deleted."""
    end = len(state.log)
    if state.phase != "running" or "waiting" in state.answer:
        return None
    if not state.flushed == state.dispatched == state.checkpoint == end:
        return None
    if state.queue_flushed != tuple(map(len, state.queue)) or state.persisted != state.committed:
        return None
    return replace(state, phase="down", abort=False, dispatched=0, next_offset=(0,) * len(state.next_offset))


def _may_crash(config: Config, state: State) -> bool:
    return config.crashes_max is None or state.process_crashes + state.system_crashes < config.crashes_max


def process_crash(config: Config, state: State) -> State | None:
    """ProcessCrash: SIGKILL; the page cache is kept."""
    if state.phase == "down" or not _may_crash(config, state):
        return None
    return replace(_lose_memory(state), process_crashes=state.process_crashes + 1)


def _system_crash(state: State, length: int, torn: bool, kept: tuple[int, ...]) -> State:
    """SystemCrash: the files keep `length` records, perhaps a torn one, and `kept` entries of each queue."""
    return replace(
        _lose_memory(state),
        log=state.log[:length] + ((TORN,) if torn else ()),
        queue=tuple(entries[:k] for entries, k in zip(state.queue, kept, strict=True)),
        system_crashes=state.system_crashes + 1,
    )


def os_crash(config: Config, state: State, length: int, torn: bool, kept: tuple[int, ...]) -> State | None:
    """OsCrash: at any time; any part of the page cache may have been written out."""
    if not _may_crash(config, state) or not state.flushed <= length <= len(state.log):
        return None
    if torn and length == len(state.log):
        return None
    for k, flushed, entries in zip(kept, state.queue_flushed, state.queue, strict=True):
        if not flushed <= k <= len(entries):
            return None
    return _system_crash(state, length, torn, kept)


def power_loss(config: Config, state: State) -> State | None:
    """PowerLoss: at any time; the page cache is lost."""
    if not _may_crash(config, state):
        return None
    return _system_crash(state, state.flushed, False, state.queue_flushed)


# Recovery; a crash may happen between any two steps, and recovery then starts over


def whole_log(state: State) -> tuple[Record, ...]:
    """WholeLog: the log without a torn record."""
    return tuple(record for record in state.log if record != TORN)


def last_queued(state: State, q: int) -> int:
    """LastQueued: the last entry of queue number `q`; 0 if it is empty."""
    return state.queue[q][-1] if state.queue[q] else 0


def dispatch_from(state: State) -> int:
    """DispatchFrom: the position after which queue entries may be missing."""
    if state.abort:
        return state.checkpoint
    return max(last_queued(state, q) for q in range(len(state.queue)))


def recover_log(_config: Config, state: State) -> State | None:
    """RecoverLog: the torn record is cut off; the rest is synced before it counts as flushed."""
    if state.phase != "down":
        return None
    log = whole_log(state)
    return replace(
        state,
        phase="log_recovered",
        log=log,
        flushed=len(log),
        dispatched=min(dispatch_from(state), len(log)),
    )


def truncate_queues(_config: Config, state: State) -> State | None:
    """TruncateQueues: entries that point beyond the log are cut off."""
    if state.phase != "log_recovered":
        return None
    queue = tuple(tuple(p for p in entries if p <= len(state.log)) for entries in state.queue)
    return replace(
        state,
        phase="dispatching",
        queue=queue,
        queue_flushed=tuple(
            min(flushed, len(entries)) for flushed, entries in zip(state.queue_flushed, queue, strict=True)
        ),
    )


def redispatch(config: Config, state: State) -> State | None:
    """Redispatch: one more record is dispatched; an existing entry is not written twice."""
    if state.phase != "dispatching" or state.dispatched >= len(state.log):
        return None
    p = state.dispatched + 1
    q = config.queues.index(state.log[p - 1].queue)
    queue = state.queue
    if p > last_queued(state, q):
        queue = with_item(queue, q, (*queue[q], p))
    return replace(state, queue=queue, dispatched=p)


def start(_config: Config, state: State) -> State | None:
    """Start: the table of next offsets is rebuilt, the abort file is written, the broker serves."""
    if state.phase != "dispatching" or state.dispatched != len(state.log):
        return None
    return replace(
        state,
        phase="running",
        abort=True,
        next_offset=tuple(map(len, state.queue)),
        appended=state.log,
    )


# Actions


def _each_length(config: Config) -> Iterator[Parameters]:
    return ((n,) for n in range(1, len(config.messages) + 1))


def _each_image(config: Config) -> Iterator[Parameters]:
    lengths = range(len(config.messages) + 1)
    kepts = product(lengths, repeat=len(config.queues))
    return product(lengths, (False, True), kepts)


def _possible_images(config: Config, state: State) -> Iterator[Parameters]:
    if not _may_crash(config, state):
        return iter(())
    lengths = range(state.flushed, len(state.log) + 1)
    kepts = product(
        *(range(f, len(entries) + 1) for f, entries in zip(state.queue_flushed, state.queue, strict=True))
    )
    return product(lengths, (False, True), kepts)


ACTIONS: Final = by_name(
    Action("AppendRecord", append_record, lambda c: product(c.messages, c.queues)),
    Action("FlushLog", flush_log, _each_length),
    Action("AnswerOk", answer_ok, each("messages")),
    Action("AnswerTimeout", answer_timeout, each("messages")),
    Action("Dispatch", dispatch, once),
    Action("FlushQueues", flush_queues, _each_length),
    Action("WriteCheckpoint", write_checkpoint, once),
    Action("Deliver", deliver, each("queues")),
    Action("CorrectOffset", correct_offset, each("queues")),
    Action("CommitOffset", commit_offset, each("queues")),
    Action("PersistOffsets", persist_offsets, once),
    Action("Shutdown", shutdown, once),
    Action("ProcessCrash", process_crash, once),
    Action("OsCrash", os_crash, _each_image, _possible_images),
    Action("PowerLoss", power_loss, once),
    Action("RecoverLog", recover_log, once),
    Action("TruncateQueues", truncate_queues, once),
    Action("Redispatch", redispatch, once),
    Action("Start", start, once),
)


# Safety


def _answered(config: Config, state: State, status: str) -> Iterator[str]:
    return (m for m, answer in zip(config.messages, state.answer, strict=True) if answer == status)


def _in_log(state: State, message: str, length: int) -> bool:
    return any(record.message == message for record in state.log[:length])


def queue_records(state: State, queue: str) -> list[Record]:
    """QueueRecords: the records of one queue, in log order."""
    return [record for record in state.log if record.queue == queue]


def promised(state: State) -> bool:
    """Promised: under ASYNC_FLUSH nothing is promised after a system crash."""
    return state.mode == SYNC_FLUSH or state.system_crashes == 0


def sync_acked_durable(config: Config, state: State) -> bool:
    """FLUSH-1 SyncAckedDurable: under SYNC_FLUSH each message answered SEND_OK is durable."""
    if state.mode != SYNC_FLUSH:
        return True
    return all(_in_log(state, m, state.flushed) for m in _answered(config, state, "SEND_OK"))


def async_acked_survives_process_crash(config: Config, state: State) -> bool:
    """FLUSH-2 AsyncAckedSurvivesProcessCrash: under ASYNC_FLUSH each message answered SEND_OK is in the log.

    It may be lost only after a system crash.
    """
    if state.mode != ASYNC_FLUSH or state.system_crashes:
        return True
    return all(_in_log(state, m, len(state.log)) for m in _answered(config, state, "SEND_OK"))


def queue_points_into_log(config: Config, state: State) -> bool:
    """FLUSH-3 QueuePointsIntoLog: each queue entry points at the record of its queue and offset."""
    if state.phase != "running":
        return True
    return all(
        1 <= p <= len(state.log) and state.log[p - 1][1:] == (name, offset)
        for name, entries in zip(config.queues, state.queue, strict=True)
        for offset, p in enumerate(entries)
    )


def queue_offsets_dense(config: Config, state: State) -> bool:
    """FLUSH-4 QueueOffsetsDense: the records of a queue have the offsets 0, 1, ..., without a gap."""
    if state.phase != "running":
        return True
    return all(
        [record.offset for record in queue_records(state, name)] == list(range(next_offset))
        for name, next_offset in zip(config.queues, state.next_offset, strict=True)
    )


def recovered_prefix(_config: Config, state: State) -> bool:
    """FLUSH-5 RecoveredPrefix: the log is a prefix of the appended records."""
    log = whole_log(state) if state.phase == "down" else state.log
    return log == state.appended[: len(log)]


def index_rebuildable(config: Config, state: State) -> bool:
    """FLUSH-6 IndexRebuildable: each queue has exactly the entries of its dispatched records."""
    if state.phase != "running":
        return True
    return all(
        entries
        == tuple(p for p, record in enumerate(state.log[: state.dispatched], start=1) if record.queue == name)
        for name, entries in zip(config.queues, state.queue, strict=True)
    )


def no_acked_lost(config: Config, state: State) -> bool:
    """DELIV-1 NoAckedLost: each acknowledged message is in the log, and the consumer has not skipped it."""
    if state.phase != "running" or not promised(state):
        return True
    records = {record.message: record for record in state.log}
    for message in _answered(config, state, "SEND_OK"):
        if message not in records:
            return False
        record = records[message]
        seen = state.seen[config.queues.index(record.queue)]
        if len(seen) > record.offset and seen[record.offset] != message:
            return False
    return True


def no_phantom(config: Config, state: State) -> bool:
    """DELIV-2 NoPhantom: the consumer sees only messages that were sent."""
    sent = set(config.messages) - set(_answered(config, state, "unsent"))
    return all(message in sent for seen in state.seen for message in seen)


def queue_order(config: Config, state: State) -> bool:
    """DELIV-4 QueueOrder: the messages that the consumer saw are the queue's, in the queue's order."""
    if state.phase != "running" or not promised(state):
        return True
    for name, seen in zip(config.queues, state.seen, strict=True):
        records = queue_records(state, name)
        if tuple(record.message for record in records[: len(seen)]) != seen:
            return False
    return True


def offset_monotone(_config: Config, before: State, action: str, after: State) -> bool:
    """DELIV-5 OffsetMonotone: in one life of the broker, offsets decrease only by a correction."""
    if before.phase != "running" or after.phase != "running" or action == "CorrectOffset":
        return True
    return all(b <= a for b, a in zip(before.committed, after.committed, strict=True))


# Liveness


FAIRNESS: Final = (
    weak("Flush", "FlushLog"),
    weak("Answer", "AnswerOk", each=FIRST),
    weak("Dispatch", "Dispatch"),
    strong("Deliver", "Deliver", each=FIRST),
    weak("Recover", "RecoverLog", "TruncateQueues", "Redispatch", "Start"),
)


def send_answered(config: Config) -> Obligations[State]:
    """FLUSH-7 SendAnswered: a send that waits is eventually answered, or its broker ends."""

    def waits(state: State, message: str) -> bool:
        return state.answer[config.messages.index(message)] == "waiting"

    return leads_to(waits, lambda s, m: not waits(s, m), of=each("messages")(config))


def recovery_ends(_config: Config) -> Obligations[State]:
    """FLUSH-8 RecoveryEnds: a broker that ended eventually runs again."""
    return leads_to(lambda s: s.phase != "running", lambda s: s.phase == "running")


def acked_delivered(config: Config) -> Obligations[State]:
    """DELIV-12 AckedDelivered: an acknowledged message is eventually delivered, while it is promised."""
    return leads_to(
        lambda s, m: s.answer[config.messages.index(m)] == "SEND_OK" and promised(s),
        lambda s, m: any(m in seen for seen in s.seen) or not promised(s),
        of=each("messages")(config),
    )


# The model in TLC's terms


def from_tla(config: Config, variables: Mapping[str, Any]) -> State:
    """Return the state that TLC prints: records and functions are mappings, sequences are tuples."""

    def log(name: str) -> tuple[Record, ...]:
        return tuple(Record(r["message"], r["queue"], r["offset"]) for r in variables[name])

    def by_queue(name: str) -> tuple[Any, ...]:
        return tuple(variables[name][q] for q in config.queues)

    return State(
        mode=variables["mode"],
        phase=variables["phase"],
        log=log("log"),
        flushed=variables["flushed"],
        queue=by_queue("queue"),
        queue_flushed=by_queue("queueFlushed"),
        checkpoint=variables["checkpoint"],
        abort=variables["abort"],
        persisted=by_queue("persisted"),
        dispatched=variables["dispatched"],
        next_offset=by_queue("nextOffset"),
        committed=by_queue("committed"),
        answer=tuple(variables["answer"][m] for m in config.messages),
        seen=by_queue("seen"),
        appended=log("appended"),
        process_crashes=variables["crashes"]["process"],
        system_crashes=variables["crashes"]["system"],
    )


def _arguments(config: Config, _name: str, parameters: Parameters) -> Iterator[Any]:
    """Yield TLA+ arguments. A tuple has a value for each queue; in TLA+ it is a function."""
    for value in parameters:
        yield dict(zip(config.queues, value, strict=True)) if isinstance(value, tuple) else value


MODEL: Final = Model(
    name="Flush",
    initial=initial,
    actions=ACTIONS,
    invariants=named(
        sync_acked_durable,
        async_acked_survives_process_crash,
        queue_points_into_log,
        queue_offsets_dense,
        recovered_prefix,
        index_rebuildable,
        no_acked_lost,
        no_phantom,
        queue_order,
    ),
    step_invariants=named(offset_monotone),
    fairness=FAIRNESS,
    liveness=named(send_answered, recovery_ends, acked_delivered),
    from_constants=configuration(
        Config, messages="Messages", queues="Queues", flush_modes="FlushModes", crashes_max="MaxCrashes"
    ),
    from_tla=from_tla,
    operator=operators(("ProcessCrash", "OsCrash", "PowerLoss"), _arguments),
)
