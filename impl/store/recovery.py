"""Recovery: from whatever files a crash left to a store that may be served from (docs/protocol.md,
"Recovery").

The order is that of spec/tla/Flush.tla: recover the log, cut the queues, dispatch again. Each step only
repeats what the files themselves say, so a crash during recovery changes nothing: the next one begins from
scratch and ends in the same state. After a clean exit the same steps run and find nothing to do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store import record
from mqproof.impl.store.checkpoint import Checkpoint, QueueCount
from mqproof.impl.store.commit_log import CommitLog
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.consume_queue import ConsumeQueue, ConsumeQueues, QueueGapError, QueueKey, Unit
from mqproof.impl.store.deleted_topics import DeletedTopics
from mqproof.impl.store.dispatch import Appended, Dispatcher, appended_record, tell_append
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.index import Index
from mqproof.impl.store.results import Recovery
from mqproof.spec.events import Kind


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a store that recovery works on; their files are open."""

    log: CommitLog
    queues: ConsumeQueues
    index: Index | None
    dispatcher: Dispatcher
    checkpoint: Checkpoint
    deleted: DeletedTopics
    distrust_queues: Callable[[], None]
    """Writes down that queue entries of any age may be missing; raises OSError."""
    events: EventLog | None
    config: StoreConfig
    role: str | None


def recover(parts: Parts, abnormal: bool) -> Recovery:
    """Run all steps; afterwards log, queues and dispatcher know their positions.

    Raises:
        StoreError: queue entries are missing that the log can no longer give. OSError: the disk failed.
    """
    log, queues = parts.log, parts.queues
    start = choose_start(log, queues, parts.checkpoint)
    end = find_end(log, start)
    if parts.events:
        tell_unlogged_appends(parts, parts.events)
    if abnormal and parts.events:
        parts.events.emit(Kind.CRASH, attrs={"kind": "unknown"})
    truncated_bytes = cut_log(log, end)
    if truncated_bytes and parts.events:
        parts.events.emit(Kind.TRUNCATE, commit_offset=end, attrs={"bytes": str(truncated_bytes)})
    sync_recovered_log(log, start if abnormal else end)
    count_as_flushed(log)
    entries_cut, redispatched = recover_queues(parts, start)
    if parts.events:
        attrs = {"abnormal": str(abnormal).lower(), "flush_disk_type": parts.config.flush_mode.value}
        if parts.role:
            attrs["role"] = parts.role
        parts.events.emit(Kind.RECOVER, commit_offset=end, attrs=attrs)
    return Recovery(abnormal, start, end, truncated_bytes, redispatched, entries_cut)


def recover_queues(parts: Parts, start: int) -> tuple[int, int]:
    """Bring queues and index to the recovered log; all before `start` is in them, by the checkpoint's word.
    How many entries were cut, and how many were missing or wrong. Raises as `recover`."""
    log, queues = parts.log, parts.queues
    entries_cut = sum(cut_queue(queue, log) for queue in queues)
    for queue in queues:
        clear_deleted(queue, parts.deleted)
    index_again(parts, start)
    redispatched = dispatch_again(parts, start)
    for queue in queues:
        queue.first = queue.find(log.begin)
    return entries_cut, redispatched


def choose_start(log: CommitLog, queues: ConsumeQueues, checkpoint: Checkpoint) -> int:
    """The latest record before which everything is durable by the checkpoint's word, queues included."""
    return max(last_counted(log, queues, checkpoint.queue_count), newest_segment(log, checkpoint))


def last_counted(log: CommitLog, queues: ConsumeQueues, count: QueueCount | None) -> int:
    """The last record before the counted position, as far as queues lead to it; else the log's begin."""
    found, position = log.begin, count.position if count else 0
    for queue in queues:
        end = queue.find_end(lambda unit: points_into_log(unit, position))
        last = queue.units(end - 1, 1)[0] if end > queue.begin else None
        # What an entry says is not trusted: the record itself must be there, or it is none to begin with.
        if last and last.commit_offset > found and points_at_its_record(queue, end - 1, log):
            found = last.commit_offset - log.header_bytes
    return found


def newest_segment(log: CommitLog, checkpoint: Checkpoint) -> int:
    """The newest segment whose first record is not later than the checkpoint's safe time; else the log's
    begin. A released broker writes down no more than times."""
    for start in reversed(log.segments.starts):
        at = start + log.header_bytes
        size, _ = record.peek(log.read(at, 8))
        stored = log.record_at(at, size)
        if stored is not None and 0 < stored.store_timestamp_ms <= checkpoint.safe_timestamp_ms:
            return start
    return log.begin


def find_end(log: CommitLog, start: int) -> int:
    """The commit offset behind the last whole record; the log's end and last store time are set to it."""
    log.end = start
    for end, stored in log.scan(start):
        log.end = end
        if stored is not None:
            log.last_record = stored.commit_offset
            log.store_timestamp_ms = stored.store_timestamp_ms
    return log.end


def tell_unlogged_appends(parts: Parts, events: EventLog) -> None:
    """Tell of the records behind the last append event: a kill may fall between a record and its event."""
    if events.last_append is None:
        return
    for _, stored in parts.log.scan(events.last_append):
        if stored is not None and stored.commit_offset > events.last_append:
            tell_append(events, appended_record(stored, parts.config.delay_levels_ms))


def cut_log(log: CommitLog, end: int) -> int:
    """Remove and zero what is behind the end; returns how many bytes that were. A torn record is no record,
    and stale bytes left behind could later pass for one."""
    return log.segments.cut(end)


def sync_recovered_log(log: CommitLog, doubtful_from: int) -> None:
    """What a killed process left in the page cache is durable only now.

    The doubtful part is written again first: where an fsync failed in an earlier life, the page cache shows
    what the disk does not have, and would not be written out by itself.
    """
    log.segments.write_again(doubtful_from, log.end)
    log.segments.sync()


def count_as_flushed(log: CommitLog) -> None:
    """The whole recovered log counts as durable: right after it was synced, and not before."""
    log.flushed = log.end
    log.flushed_timestamp_ms = log.store_timestamp_ms


def clear_deleted(queue: ConsumeQueue, deleted: DeletedTopics) -> None:
    """A crash came between the deletion of a topic and that of its queues: their last entries tell."""
    if (last := queue.last) is not None and deleted.has(queue.key[0], last.commit_offset):
        queue.clear()


def cut_queue(queue: ConsumeQueue, log: CommitLog) -> int:
    """Cut the entries that point beyond the log, and those never written; returns how many were cut.

    The last entry kept must be that of its record: one that an earlier cut, itself torn by a crash, zeroed in
    part may point anywhere.
    """
    end = queue.find_end(lambda unit: points_into_log(unit, log.end))
    while end > queue.begin and not (
        is_expired(queue, end - 1, log) or points_at_its_record(queue, end - 1, log)
    ):
        end -= 1
    return queue.cut(end)


def points_into_log(unit: Unit, log_end: int) -> bool:
    """The entry was written, for a record that the log still has."""
    return unit.size > 0 and 0 <= unit.commit_offset < log_end


def is_expired(queue: ConsumeQueue, queue_offset: int, log: CommitLog) -> bool:
    """The entry is of a record that the log had before; in a queue commit offsets grow."""
    (unit,) = queue.units(queue_offset, 1)
    before = queue.units(queue_offset - 1, 1) if queue_offset > queue.begin else []
    least = before[0].commit_offset if before else -1
    return least < unit.commit_offset < log.begin


def points_at_its_record(queue: ConsumeQueue, queue_offset: int, log: CommitLog) -> bool:
    """The record that the entry points at is of this queue and has this offset."""
    (unit,) = queue.units(queue_offset, 1)
    stored = log.record_at(unit.commit_offset, unit.size)
    return (
        stored is not None
        and (stored.message.topic, stored.message.queue_id) == queue.key
        and stored.queue_offset == queue_offset
    )


def index_again(parts: Parts, start: int) -> None:
    """Throw away what the index knows of records that are gone, and index those before `start` that it
    lacks; the others are indexed as they are dispatched again."""
    if parts.index is None:
        return
    parts.index.cut(parts.log.begin, parts.log.end)
    for end, stored in parts.log.scan(parts.index.position):
        if stored is not None and stored.commit_offset < start:
            parts.dispatcher.index(appended_record(stored, parts.config.delay_levels_ms))
        if end >= start:
            return


def queues_are_whole(queues: ConsumeQueues, checkpoint: Checkpoint) -> bool:
    """No queue file is gone, as far as the checkpoint tells: no fewer entries are there than it counted.

    There may be more: stale ones behind a torn cut, which dispatch is about to overwrite.
    """
    count = checkpoint.queue_count
    if count is None:  # a released broker wrote it; at least some queue must be there
        return len(queues) > 0
    return queues.count_between(count.begin, count.position) >= count.entries


def dispatch_again(parts: Parts, start: int) -> int:
    """Dispatch every record from `start` on; returns how many entries were missing or wrong.

    When entries before `start` are missing (the checkpoint was wrong, or files are gone), everything is
    dispatched again.
    """
    if start > parts.log.begin:
        try:
            if queues_are_whole(parts.queues, parts.checkpoint):
                return _dispatch_from(parts, start)
        except QueueGapError:
            pass
        # What is made up now is not durable: a crash must not leave less than the checkpoint vouches for.
        parts.distrust_queues()
    try:
        return _dispatch_from(parts, parts.log.begin)
    except QueueGapError as error:
        raise StoreError(f"{error}, and the log no longer has its record") from None


def _dispatch_from(parts: Parts, start: int) -> int:
    log = parts.log
    parts.dispatcher.position = reached = start
    ends: dict[QueueKey, int] = {}
    births = _births(parts, start)
    written = 0
    for end, stored in log.scan(start):
        reached = end
        if stored is not None and not _is_deleted(stored, parts.deleted, births):
            appended = appended_record(stored, parts.config.delay_levels_ms)
            if appended.queued and (appended.topic, appended.queue_id) not in ends:
                _make_room(parts, appended, is_oldest=start == log.begin > 0)
            written += _dispatch_one(parts, appended, ends)
    if reached < log.end:
        path = log.segments.path_of(reached)
        raise StoreError(f"{path}: no whole record at commit offset {reached}, and queues lack its entry")
    parts.dispatcher.position, parts.dispatcher.store_timestamp_ms = log.end, log.store_timestamp_ms
    for key, end in ends.items():
        queue = parts.queues.find(*key)
        assert queue is not None, f"queue {key} was just dispatched to"
        if queue.end > end:  # entries that point into the log, but at no record of this queue
            queue.cut(end)
    return written


def _births(parts: Parts, start: int) -> dict[QueueKey, int]:
    """Where the first record is of the queues that begin behind `start`. A released broker tells no more of a
    topic that was deleted and made anew: records before are of the old one."""
    found = {}
    for queue in parts.queues:
        units = queue.units(0, 1) if queue.begin == 0 else []
        if units and units[0].commit_offset > start and points_at_its_record(queue, 0, parts.log):
            found[queue.key] = units[0].commit_offset
    return found


def _is_deleted(stored: StoredMessage, deleted: DeletedTopics, births: dict[QueueKey, int]) -> bool:
    message, at = stored.message, stored.commit_offset
    return deleted.has(message.topic, at) or at < births.get((message.topic, message.queue_id), 0)


def _make_room(parts: Parts, appended: Appended, *, is_oldest: bool) -> None:
    """Before a queue's first record is dispatched: where the queue's files do not reach to it and yet
    nothing is missing, the queue begins with it. `is_oldest`: the log has none before it any more."""
    offset = appended.queue_offset
    queue = parts.queues.find_or_make(appended.topic, appended.queue_id)
    if offset == 0 < queue.begin:
        queue.clear()  # its first files are gone, and the log has all that was in them
    elif is_oldest and not queue.begin <= offset <= queue.end:
        queue.clear()  # the entries between are of records that the log no longer has
        queue.begin_at(offset)


def _dispatch_one(parts: Parts, appended: Appended, ends: dict[QueueKey, int]) -> bool:
    """Dispatch a record and note the end of its queue; returns whether its entry was missing or wrong."""
    if appended.queued:
        key, offset = (appended.topic, appended.queue_id), appended.queue_offset
        if offset == 0 < ends.get(key, 0):  # a master's topic was deleted and made anew
            parts.queues.find_or_make(*key).clear()
        elif offset < ends.get(key, offset):
            return False  # a damaged one, for the offset is another record's already
        ends[key] = offset + 1
    return parts.dispatcher.dispatch(appended)
