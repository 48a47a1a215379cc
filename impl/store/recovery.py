"""Recovery: makes a store consistent again from the files that a crash left.

See docs/reference/protocol/recovery.md, "Recovery". The order is that of spec/tla/Flush.tla: recover the log,
cut the queues, dispatch again. Each step depends only on the content of the files. A crash during recovery
therefore changes nothing: the next recovery starts over and ends in the same state. After a clean exit the
same steps run and find nothing to do.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.dispatch import (
    Appended,
    Dispatcher,
    appended_record,
    emit_append,
    takes_queue_offset,
)
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.checkpoint import DISTRUST, Checkpoint, QueueCount
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, ConsumeQueues, QueueGapError, QueueKey, Unit
from mqproof.impl.store.files.deleted_topics import DeletedTopics
from mqproof.impl.store.files.index import Index
from mqproof.impl.store.results import Recovery
from mqproof.spec.events import Kind

_LISTED_MAX: Final = 1000
"""How many lost records of a queue are reported one by one."""


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
    """Records durably that queue entries of any age may be missing; raises OSError."""
    events: EventLog | None
    config: StoreConfig
    role: str | None
    damage: DamageReport


def recover(parts: Parts, abnormal: bool) -> Recovery:
    """Run all steps; afterwards log, queues and dispatcher know their positions.

    Raises:
        StoreError: queue entries are missing that the log can no longer provide. OSError: the disk failed.
    """
    log, queues = parts.log, parts.queues
    trust_checkpoint(log, parts.checkpoint)
    log.is_listed = partial(_has_entry, queues)
    start = choose_start(log, queues, parts.checkpoint)
    end = find_end(log, start)
    report_cut(parts, end)
    if parts.events:
        emit_unlogged_appends(parts, parts.events)
    if abnormal and parts.events:
        parts.events.emit(Kind.CRASH, attrs={"kind": "unknown"})
    truncated_bytes = cut_log(log, end)
    if truncated_bytes and parts.events:
        parts.events.emit(Kind.TRUNCATE, commit_offset=end, attrs={"bytes": str(truncated_bytes)})
    if parts.config.flush_mode is FlushMode.SYNC_FLUSH:
        report_lost_end(parts, end, truncated_bytes)
    sync_recovered_log(log, start if abnormal else end)
    count_as_flushed(log)
    if parts.config.flush_mode is FlushMode.SYNC_FLUSH:
        log.known_end = log.end  # no queue has an entry for a record that a crash can undo
    entries_cut, redispatched = recover_queues(parts, start)
    if parts.events:
        attrs = {"abnormal": str(abnormal).lower(), "flush_disk_type": parts.config.flush_mode.value}
        if parts.role:
            attrs["role"] = parts.role
        parts.events.emit(Kind.RECOVER, commit_offset=end, attrs=attrs)
    return Recovery(abnormal, start, end, truncated_bytes, redispatched, entries_cut)


def trust_checkpoint(log: CommitLog, checkpoint: Checkpoint) -> None:
    """Take from the checkpoint which part of the log is durable, so that damage there is recognised.

    Raises:
        StoreError: a segment of that part is missing.
    """
    count = checkpoint.queue_count
    if count is None or count == DISTRUST:
        return
    if log.segments.capacity_end < count.position:
        missing = log.segments.path_of(max(log.segments.capacity_end, count.begin))
        raise StoreError(f"{missing}: missing, the log was durable up to commit offset {count.position}")
    if log.begin > count.begin:
        missing = log.segments.path_of(count.begin)
        raise StoreError(f"{missing}: missing, the log began at commit offset {count.begin}")
    log.known_end = count.position


def report_cut(parts: Parts, end: int) -> None:
    """Report it if recovery cuts whole records, which follow bytes that are not a record.

    No checkpoint says that they were durable, so a crash can have lost the bytes before them. But it can also
    be damage, and then messages are lost that were acknowledged.
    """
    log = parts.log
    if (at := log.next_whole(end)) is not None:
        place = f"{log.segments.path_of(end)}, commit offset {end}"
        problem = f"no whole record is there, but one follows at {at}, and no checkpoint covers them"
        parts.damage.add(Damage(DamageKind.LOG, place, problem, Outcome.CUT))


def report_lost_end(parts: Parts, end: int, truncated_bytes: int) -> None:
    """Report what a log that is flushed before each answer had after its end, by place.

    A queue has an entry only for a durable record, so a record without its bytes is damaged. Bytes that are
    no record are damaged too, or a crash interrupted their write. What `report_cut` reported is not reported
    again.
    """
    log = parts.log
    path, is_listed = log.segments.path_of(end), False
    for queue in parts.queues:
        first = queue.find_end(lambda unit: points_into_log(unit, end))
        beyond = list(_written(queue, first, _LISTED_MAX))
        is_listed |= bool(beyond)
        for offset, unit in beyond:
            place = record_place(log, queue, offset, unit)
            parts.damage.add(Damage(DamageKind.RECORD, place, "no whole record is there", Outcome.CUT))
    if truncated_bytes and not is_listed:
        problem = f"{truncated_bytes} bytes are no whole record: they are damaged, or a crash came first"
        parts.damage.add(Damage(DamageKind.LOG, f"{path}, commit offset {end}", problem, Outcome.CUT))


def _written(queue: ConsumeQueue, first: int, count: int) -> Iterator[tuple[int, Unit]]:
    """Yield the written ones of `count` entries with their offsets, beyond the end of a segment too."""
    while units := list(queue.fields(first, count)):  # nearly all were never written
        yield from ((offset, Unit(*each)) for offset, each in enumerate(units, first) if each[1] > 0)
        first, count = first + len(units), count - len(units)


def record_place(log: CommitLog, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> str:
    """Return the file, the commit offset and the queue offset of a record, in words."""
    topic, queue_id = queue.key
    return (
        f"{log.segments.path_of(max(unit.commit_offset, 0))}, commit offset {unit.commit_offset}"
        f" (topic {topic}, queue {queue_id}, offset {queue_offset})"
    )


def recover_queues(parts: Parts, start: int) -> tuple[int, int]:
    """Bring queues and index to the recovered log; return how many entries were cut and how many written.

    By the checkpoint, the queues contain everything before `start`. Raises as `recover`.
    """
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
    """Return the latest position before which everything is durable by the checkpoint, queues included."""
    return max(last_counted(log, queues, checkpoint.queue_count), newest_segment(log, checkpoint))


def last_counted(log: CommitLog, queues: ConsumeQueues, count: QueueCount | None) -> int:
    """Return the last record before the counted position to which a queue points; else the log's begin."""
    found, position = log.begin, count.position if count else 0
    for queue in queues:
        end = queue.find_end(lambda unit: points_into_log(unit, position))
        last = queue.units(end - 1, 1)[0] if end > queue.begin else None
        # An entry is not trusted: recovery can begin only at a record that is really there.
        if last and last.commit_offset > found and points_at_its_record(queue, end - 1, log):
            found = last.commit_offset - log.header_bytes
    return found


def newest_segment(log: CommitLog, checkpoint: Checkpoint) -> int:
    """Return the newest segment whose first record is not later than the checkpoint's safe time.

    If there is none, return the log's begin. Released brokers write only times to their checkpoint.
    """
    for start in reversed(log.segments.starts):
        at = start + log.header_bytes
        size, _ = record.peek(log.read(at, 8))
        stored = log.record_at(at, size)
        if stored is not None and 0 < stored.store_timestamp_ms <= checkpoint.safe_timestamp_ms:
            return start
    return log.begin


def find_end(log: CommitLog, start: int) -> int:
    """Find the end of the last whole record; set the log's end, last record and store time to it."""
    log.end = start
    for end, stored in log.scan(start):
        log.end = end
        if stored is not None:
            log.last_record = stored.commit_offset
            log.store_timestamp_ms = stored.store_timestamp_ms
    return log.end


def emit_unlogged_appends(parts: Parts, events: EventLog) -> None:
    """Emit append events for the records after the last append event.

    The process may have been killed between a record and its event.
    """
    if events.last_append is None:
        return
    for _, stored in parts.log.scan(events.last_append):
        if stored is not None and stored.commit_offset > events.last_append:
            emit_append(events, appended_record(stored, parts.config.delay_levels_ms))


def cut_log(log: CommitLog, end: int) -> int:
    """Remove and zero everything after the end; return how many bytes were cut.

    A torn record is not a record, and stale bytes after the end could later be read as one.
    """
    return log.segments.cut(end)


def sync_recovered_log(log: CommitLog, doubtful_from: int) -> None:
    """Make durable what a killed process left in the page cache.

    The part that may not be durable is written again first. If an fsync failed in an earlier process, the
    page cache shows data that the disk does not have and that the system would not write by itself.
    """
    log.segments.write_again(doubtful_from, log.end)
    log.segments.sync()


def count_as_flushed(log: CommitLog) -> None:
    """Count the whole recovered log as durable; call this right after it was synced."""
    log.flushed = log.end
    log.flushed_timestamp_ms = log.store_timestamp_ms


def clear_deleted(queue: ConsumeQueue, deleted: DeletedTopics) -> None:
    """Clear a queue whose last entry is of a deleted topic.

    This happens if a crash came between the deletion of the topic and that of its queues.
    """
    if (last := queue.last) is not None and deleted.has(queue.key[0], last.commit_offset):
        queue.clear()


def cut_queue(queue: ConsumeQueue, log: CommitLog) -> int:
    """Cut the entries that point beyond the log, and those never written; return how many were cut.

    The last entry that is kept must match its record. An entry may be partly zeroed by an earlier cut that a
    crash interrupted, and such an entry may point anywhere.
    """
    end = queue.find_end(lambda unit: points_into_log(unit, log.end))
    while end > queue.begin and not (
        is_expired(queue, end - 1, log)
        or points_at_its_record(queue, end - 1, log)
        or points_into_damage(queue, end - 1, log)
    ):
        end -= 1
    return queue.cut(end)


def points_into_damage(queue: ConsumeQueue, queue_offset: int, log: CommitLog) -> bool:
    """Return whether the entry's record is in a damaged part of the log.

    Such an entry is kept. Otherwise the next message of the queue would get the offset of the lost one, and a
    consumer that is ahead of the lost message would never receive the new one.
    """
    (unit,) = queue.units(queue_offset, 1)
    at = unit.commit_offset
    if not log.begin <= at < log.known_end:
        return False
    begin = next(start for start in reversed(log.segments.starts) if start <= at)
    follows_sound = queue_offset > queue.begin and points_at_its_record(queue, queue_offset - 1, log)
    if follows_sound:
        (before,) = queue.units(queue_offset - 1, 1)
        begin = before.commit_offset + before.size
    there: StoredMessage | None = None
    for position, stored in log.scan(begin):
        if stored is not None and stored.commit_offset == at:
            there = stored
        if stored is not None and has_offset(stored, queue, queue_offset):
            return False  # the entry is damaged, not its record
        if position > at and not follows_sound:
            break
    if there is not None and follows_sound and not log.is_listed(there):
        # The log has no record of this offset, so this one is it. Its topic, queue or offset is altered,
        # which no checksum covers.
        log.mark_damaged(at, at + there.size)
    return log.is_damaged(at)


def is_record_of(stored: StoredMessage, queue: ConsumeQueue, queue_offset: int) -> bool:
    """Return whether the record names this queue and offset as its own."""
    key = (stored.message.topic, stored.message.queue_id)
    return key == queue.key and stored.queue_offset == queue_offset


def has_offset(stored: StoredMessage, queue: ConsumeQueue, queue_offset: int) -> bool:
    """Return whether the record takes this offset; a prepared or rolled-back one only names an offset."""
    return is_record_of(stored, queue, queue_offset) and takes_queue_offset(stored.message.sys_flag)


def _has_entry(queues: ConsumeQueues, stored: StoredMessage) -> bool:
    """Return whether the queue that a record names has an entry for it."""
    queue = queues.find(stored.message.topic, stored.message.queue_id)
    units = queue.units(stored.queue_offset, 1) if queue and stored.queue_offset >= queue.begin else []
    return bool(units) and units[0].commit_offset == stored.commit_offset


def _points_to(queue: ConsumeQueue, queue_offset: int, stored: StoredMessage) -> bool:
    """Return whether the queue has a written entry for the record at this offset, whatever it names."""
    if not queue.begin <= queue_offset < queue.end:
        return False
    (unit,) = queue.units(queue_offset, 1)
    return (unit.commit_offset, unit.size) == (stored.commit_offset, stored.size)


def points_into_log(unit: Unit, log_end: int) -> bool:
    """Return whether the entry was written, for a record before the log's end."""
    return unit.size > 0 and 0 <= unit.commit_offset < log_end


def is_expired(queue: ConsumeQueue, queue_offset: int, log: CommitLog) -> bool:
    """Return whether the entry's record has expired; the commit offsets in a queue always increase."""
    (unit,) = queue.units(queue_offset, 1)
    before = queue.units(queue_offset - 1, 1) if queue_offset > queue.begin else []
    least = before[0].commit_offset if before else -1
    return least < unit.commit_offset < log.begin


def points_at_its_record(queue: ConsumeQueue, queue_offset: int, log: CommitLog) -> bool:
    """Return whether the entry's record is of this queue and has this offset."""
    (unit,) = queue.units(queue_offset, 1)
    stored = log.record_at(unit.commit_offset, unit.size)
    return stored is not None and is_record_of(stored, queue, queue_offset)


def index_again(parts: Parts, start: int) -> None:
    """Remove index entries of records that are gone, and index the missing ones before `start`.

    The other records are indexed when they are dispatched again.
    """
    if parts.index is None:
        return
    parts.index.cut(parts.log.begin, parts.log.end)
    for end, stored in parts.log.scan(parts.index.position):
        if stored is not None and stored.commit_offset < start:
            parts.dispatcher.index(appended_record(stored, parts.config.delay_levels_ms))
        if end >= start:
            return


def queues_are_whole(queues: ConsumeQueues, checkpoint: Checkpoint) -> bool:
    """Return whether the queues have at least as many entries as the checkpoint counted.

    If not, queue files are missing. There may be more entries: stale ones after a torn cut, which dispatch is
    about to overwrite.
    """
    count = checkpoint.queue_count
    if count is None:  # written by a released broker; at least one queue must exist
        return len(queues) > 0
    return queues.count_between(count.begin, count.position) >= count.entries


def dispatch_again(parts: Parts, start: int) -> int:
    """Dispatch every record from `start` on; return how many entries were missing or wrong.

    When entries before `start` are missing (the checkpoint was wrong, or files are missing), the whole log is
    dispatched again.
    """
    if start > parts.log.begin:
        try:
            if queues_are_whole(parts.queues, parts.checkpoint):
                written = _dispatch_from(parts, start)
                if queues_are_whole(parts.queues, parts.checkpoint):
                    return written
        except QueueGapError:
            pass
        # The entries written now are not durable, and a crash must not leave fewer than the checkpoint
        # counts.
        parts.distrust_queues()
    try:
        written = _dispatch_from(parts, parts.log.begin)
    except QueueGapError as error:
        raise StoreError(f"{error}, and its record is no longer in the log") from None
    require_counted(parts)
    return written


def require_counted(parts: Parts) -> None:
    """Require that the whole log gave the queues as many entries as the checkpoint counted.

    Raises:
        StoreError: it gave fewer: a record is damaged in the number of its queue or its offset.
    """
    count = parts.checkpoint.queue_count
    if count is None or count == DISTRUST or parts.deleted.table:
        return
    entries = parts.queues.count_between(count.begin, count.position)
    if entries < count.entries:
        entries += _replaced_entries(parts, count)
    if entries < count.entries:
        raise StoreError(
            f"{parts.queues.directory}: {count.entries} entries expected by the checkpoint, the log has"
            f" records for {entries}: a record of the log is damaged"
        )


def _replaced_entries(parts: Parts, count: QueueCount) -> int:
    """Return the number of counted records whose topic a master deleted and recreated afterwards.

    The records of the new topic took the places of their entries.
    """
    births = _births(parts, parts.log.begin)
    replaced = (
        takes_queue_offset(stored.message.sys_flag) and _is_deleted(stored, parts.deleted, births)
        for _, stored in parts.log.scan(count.begin)
        if stored is not None and stored.commit_offset < count.position
    )
    return sum(replaced)


def _dispatch_from(parts: Parts, start: int) -> int:
    log = parts.log
    parts.dispatcher.position = reached = start
    ends: dict[QueueKey, int] = {}
    births = _births(parts, start)
    certain_end = _certain_end(parts)
    written = 0
    for end, stored in log.scan(start):
        reached = end
        if stored is not None and stored.commit_offset < certain_end and _contradicts_entry(parts, stored):
            log.mark_damaged(stored.commit_offset, stored.commit_offset + stored.size)
        elif stored is not None and not _is_deleted(stored, parts.deleted, births):
            appended = appended_record(stored, parts.config.delay_levels_ms)
            key = appended.topic, appended.queue_id
            if appended.queued and key not in ends:
                _make_room(parts, appended, is_oldest=start == log.begin > 0)
                ends[key] = appended.queue_offset + _is_taken(parts, appended, start)
            written += _dispatch_one(parts, appended, ends)
    if reached < log.end:
        path = log.segments.path_of(reached)
        raise StoreError(
            f"{path}: no complete record at commit offset {reached}, and the queues lack its entry"
        )
    parts.dispatcher.position, parts.dispatcher.store_timestamp_ms = log.end, log.store_timestamp_ms
    for key, end in ends.items():
        queue = parts.queues.find(*key)
        assert queue is not None, f"queue {key} was just dispatched to"
        kept = queue.end
        while kept > end and not points_into_damage(queue, kept - 1, log):
            kept -= 1
        if queue.end > kept:  # entries that point into the log, but not at a record of this queue
            queue.cut(kept)
    return written


def _certain_end(parts: Parts) -> int:
    """Return the commit offset before which a record that differs from its queue entry is damaged.

    Records after the newest entry have none. Only a log that is flushed before each answer gives queues no
    entry, beyond the counted position, for a record that a crash can undo.
    """
    is_sync = parts.config.flush_mode is FlushMode.SYNC_FLUSH
    newest = max((unit.commit_offset for queue in parts.queues if (unit := queue.last)), default=-1)
    return min(parts.log.end if is_sync else parts.log.known_end, newest + 1)


def _contradicts_entry(parts: Parts, stored: StoredMessage) -> bool:
    """Return whether an entry shows that the topic, queue, offset or kind of a record is altered.

    No checksum covers them. No other entry can be for the record, and a record that takes no offset has none.
    """
    if _has_entry(parts.queues, stored):
        return not takes_queue_offset(stored.message.sys_flag)
    named = parts.queues.find(stored.message.topic, stored.message.queue_id)
    if named is not None and _points_to(named, named.find(stored.commit_offset), stored):
        return True
    return any(_points_to(queue, stored.queue_offset, stored) for queue in parts.queues)


def _births(parts: Parts, start: int) -> dict[QueueKey, int]:
    """Return the first commit offset of each queue that begins after `start`.

    Records of the queue before it belong to an old topic that was deleted and recreated. After a released
    broker, this is the only sign of the deletion.
    """
    found = {}
    for queue in parts.queues:
        units = queue.units(0, 1) if queue.begin == 0 else []
        if units and units[0].commit_offset > start and points_at_its_record(queue, 0, parts.log):
            found[queue.key] = units[0].commit_offset
    return found


def _is_deleted(stored: StoredMessage, deleted: DeletedTopics, births: dict[QueueKey, int]) -> bool:
    message, at = stored.message, stored.commit_offset
    return deleted.has(message.topic, at) or at < births.get((message.topic, message.queue_id), 0)


def _is_taken(parts: Parts, appended: Appended, start: int) -> bool:
    """Return whether a sound record before `start` has the queue offset of this record."""
    queue = parts.queues.find(appended.topic, appended.queue_id)
    if queue is None or not queue.begin <= appended.queue_offset < queue.end:
        return False
    (unit,) = queue.units(appended.queue_offset, 1)
    return unit.commit_offset < start and points_at_its_record(queue, appended.queue_offset, parts.log)


def _make_room(parts: Parts, appended: Appended, *, is_oldest: bool) -> None:
    """Clear a queue whose entries do not adjoin this record, so that it begins with the record.

    This is done if the first files of the queue are missing, and if the log no longer has the records of the
    entries between. `is_oldest` means that older segments of the log were deleted, so that this is the oldest
    record of the queue.
    """
    offset = appended.queue_offset
    queue = parts.queues.find_or_make(appended.topic, appended.queue_id)
    if offset == 0 < queue.begin:
        queue.clear()  # its first files are missing, and the log has all their records
    elif is_oldest and not queue.begin <= offset <= queue.end:
        queue.clear()  # the records of the entries between are no longer in the log
        queue.begin_at(offset)


def _dispatch_one(parts: Parts, appended: Appended, ends: dict[QueueKey, int]) -> bool:
    """Dispatch a record and record the end of its queue; return whether its entry was missing or wrong."""
    if appended.queued:
        key, offset = (appended.topic, appended.queue_id), appended.queue_offset
        if offset == 0 < ends[key]:  # a master's topic was deleted and recreated
            parts.queues.find_or_make(*key).clear()
        elif offset < ends[key]:
            return False  # a damaged record: its offset belongs to another record already
        ends[key] = offset + 1
    return parts.dispatcher.dispatch(appended)
