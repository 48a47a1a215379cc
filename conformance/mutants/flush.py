"""The mutants that the flush suite must detect: a broker and its store with one wrong rule each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.store import reader, recovery
from mqproof.impl.store.appender import Appender
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.flush import FlushRound, LogFlusher
from mqproof.impl.store.message_store import MessageStore
from mqproof.impl.store.recovery import Parts
from mqproof.impl.store.results import GetResult, PutStatus

# Truthful answers


_Call = Callable[[PutStatus], None]


def _settle_at_once(_store: MessageStore, _appended: object, _wait: bool, call: _Call) -> None:
    call(PutStatus.PUT_OK)


def _settle_as_refused(store: MessageStore, appended: Any, wait: bool, call: _Call) -> None:
    timeout = PutStatus.FLUSH_DISK_TIMEOUT
    _settle(
        store,
        appended,
        wait,
        lambda status: call(PutStatus.SERVICE_NOT_AVAILABLE if status is timeout else status),
    )


def _settle_for_ever(store: MessageStore, appended: Any, wait: bool, call: _Call) -> None:
    """Does not answer a send whose flush takes too long."""
    timeout = PutStatus.FLUSH_DISK_TIMEOUT
    _settle(store, appended, wait, lambda status: None if status is timeout else call(status))


def _round_covers_all(flusher: LogFlusher, flush_round: FlushRound) -> None:
    _round_done(flusher, replace(flush_round, end=flusher._log.end))


def _failure_counts_as_done(flusher: LogFlusher, _error: OSError) -> None:
    log = flusher._log
    _round_done(flusher, FlushRound(log.end, log.store_timestamp_ms, log.take_unsynced()))


def _confirm_everything(store: MessageStore) -> int:
    return store.log_end


# Appending


def _no_room_for_a_filler(log: CommitLog, size: int) -> int:
    """Lets a record end so close to the end of its segment that no filler fits behind it."""
    end = log._staged_end if log._staged else log.end
    room = log.segments.segment_bytes - end % log.segments.segment_bytes
    if size <= room:
        return end
    if room >= record.FILLER_BYTES:
        return _room_for(log, size)
    log.write_staged()
    return end + room


def _by_the_clock(_log: CommitLog, now_ms: int) -> int:
    return now_ms


# Recovery


def _forget_the_last_record(log: CommitLog, start: int) -> int:
    ends = [start, *(end for end, _ in log.scan(start))]
    _find_end(log, start)
    log.end = ends[-2] if len(ends) > 1 else start
    return log.end


def _sync_nothing(_log: CommitLog, _start: int) -> None:
    pass


def _cut_no_queue(queue: ConsumeQueue, _log: CommitLog) -> int:
    return queue.cut(queue.find_end(lambda unit: unit.size > 0))


def _count_from_zero(appender: Appender, topic: str, queue_id: int) -> int:
    return appender._queue_offsets.get((topic, queue_id), 0)


def _dispatch_nothing(parts: Parts, _start: int) -> int:
    parts.dispatcher.position = parts.log.end
    return 0


def _any_text(_text: bytes) -> bool:
    return True


def _refuse_a_torn_record(log: CommitLog, start: int) -> int:
    end = _find_end(log, start)
    if any(log.read(end, record.SIZE_MIN)):
        raise StoreError(f"there is no record at {end}")
    return end


def _refuse_missing_entries(parts: Parts, start: int) -> int:
    if _dispatch_again(parts, start):
        raise StoreError(f"{parts.queues.directory}: entries are missing")
    return 0


# Reading


def _neighbours_queue(
    store: MessageStore, topic: str, queue_id: int, *arguments: Any, **options: Any
) -> GetResult:
    other = queue_id ^ 1
    return _get(store, topic, other if store.max_offset(topic, other) else queue_id, *arguments, **options)


def _skip_one(*arguments: Any) -> GetResult:
    found = _read_messages(*arguments)
    return replace(found, records=found.records[1:]) if len(found.records) > 1 else found


# Consumer offsets


def _commit_one_less(table: OffsetTable, group: str, topic: str, queue_id: int, offset: int) -> None:
    _commit(table, group, topic, queue_id, max(0, offset - 1))


async def _persist_nothing(_broker: Broker) -> None:
    pass


# The original functions, which some of the wrong ones call

_settle = MessageStore.when_settled
_round_done = LogFlusher.round_done
_room_for = CommitLog._room_for
_find_end = recovery.find_end
_dispatch_again = recovery.dispatch_again
_get = MessageStore.get
_read_messages = reader.read_messages
_commit = OffsetTable.commit

_STORE: Final = "mqproof.impl.store.message_store:MessageStore"
_FLUSH: Final = "mqproof.impl.store.flush:LogFlusher"
_RECOVERY: Final = "mqproof.impl.store.recovery"

MUTANTS: Final = by_name(
    Mutant(
        "ack-before-flush",
        "under SYNC_FLUSH a send is answered before its fsync",
        "FLUSH-1",
        f"{_STORE}.when_settled",
        _settle_at_once,
    ),
    Mutant(
        "ack-of-the-next-flush",
        "an fsync counts for records appended while it ran",
        "FLUSH-1",
        f"{_FLUSH}.round_done",
        _round_covers_all,
    ),
    Mutant(
        "fsync-error-answered-ok",
        "a failed fsync counts as a successful one",
        "FLUSH-1",
        f"{_FLUSH}.round_failed",
        _failure_counts_as_done,
    ),
    Mutant(
        "last-record-forgotten",
        "recovery treats the last record as a torn one",
        "FLUSH-2",
        f"{_RECOVERY}:find_end",
        _forget_the_last_record,
    ),
    Mutant(
        "no-room-for-a-filler",
        "a record is written although no filler fits behind it in its segment",
        "FLUSH-2",
        "mqproof.impl.store.files.commit_log:CommitLog._room_for",
        _no_room_for_a_filler,
    ),
    Mutant(
        "store-time-goes-back",
        "a record gets the time of the clock, also after the clock was set back",
        "SPEC-1",
        "mqproof.impl.store.files.commit_log:CommitLog.next_store_timestamp",
        _by_the_clock,
    ),
    Mutant(
        "late-flush-not-answered",
        "a send whose flush takes too long is not answered",
        "FLUSH-7",
        f"{_STORE}.when_settled",
        _settle_for_ever,
    ),
    Mutant(
        "torn-record-refused",
        "a broker whose log ends in a torn record does not start",
        "FLUSH-8",
        f"{_RECOVERY}:find_end",
        _refuse_a_torn_record,
    ),
    Mutant(
        "missing-entries-refused",
        "a broker whose queues lack entries that the log has records for does not start",
        "FLUSH-8",
        f"{_RECOVERY}:dispatch_again",
        _refuse_missing_entries,
    ),
    Mutant(
        "queue-of-the-neighbour",
        "a pull reads another queue of the topic",
        "FLUSH-3",
        f"{_STORE}.get",
        _neighbours_queue,
    ),
    Mutant(
        "queue-not-cut",
        "queue entries that point beyond the recovered log are kept",
        "DELIV-4",
        f"{_RECOVERY}:cut_queue",
        _cut_no_queue,
    ),
    Mutant(
        "offsets-counted-from-zero",
        "after a restart the queue offsets start from zero",
        "FLUSH-4",
        "mqproof.impl.store.appender:Appender.next_queue_offset",
        _count_from_zero,
    ),
    Mutant(
        "torn-text-accepted",
        "a record with torn properties counts as complete",
        "FLUSH-5",
        "mqproof.impl.store.files.record:text_is_whole",
        _any_text,
    ),
    Mutant(
        "not-dispatched-again",
        "queue entries that a crash removed are not written again",
        "DELIV-1",
        f"{_RECOVERY}:dispatch_again",
        _dispatch_nothing,
    ),
    Mutant(
        "refused-but-stored",
        "a message is refused after it was stored",
        "DELIV-2",
        f"{_STORE}.when_settled",
        _settle_as_refused,
    ),
    Mutant(
        "pull-skips",
        "a pull omits the first of several messages",
        "DELIV-4",
        "mqproof.impl.store.base:read_messages",
        _skip_one,
    ),
    Mutant(
        "dispatch-before-flush",
        "under SYNC_FLUSH messages are readable that a crash can remove",
        "DELIV-4",
        f"{_STORE}.confirm_offset",
        _confirm_everything,
    ),
    Mutant(
        "recovered-not-synced",
        "data that recovery finds in the page cache counts as durable without an fsync",
        "DELIV-4",
        f"{_RECOVERY}:sync_recovered_log",
        _sync_nothing,
    ),
    Mutant(
        "commit-goes-back",
        "a committed offset is stored as one less",
        "DELIV-5",
        "mqproof.impl.broker.state.offsets:OffsetTable.commit",
        _commit_one_less,
    ),
    Mutant(
        "offsets-not-persisted",
        "consumer offsets are never written, not even at a clean exit",
        "SPEC-1",
        "mqproof.impl.broker.broker:Broker._persist_offsets",
        _persist_nothing,
    ),
)
"""The mutants by name."""
