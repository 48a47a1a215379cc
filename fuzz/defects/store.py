"""Mutants of a store. Each breaks a rule that prevents a crash from removing or changing messages."""

from collections.abc import Callable
from typing import Any, Final

from mqproof.fuzz.defects.defect import Mutant
from mqproof.impl.store.appender import Appender
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.checkpoint import Checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, Unit
from mqproof.impl.store.files.segments import SegmentedFile
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.queue_flush import CheckpointWriter

_load_segments = SegmentedFile.load
_put_unit = ConsumeQueue.put


def _always(*_: object) -> bool:
    return True


def _nothing(*_: object) -> int:
    return 0


def _count_failed_round(flusher: LogFlusher, _error: OSError) -> None:
    flusher._log.flushed = flusher._log.end


def _newest_segment(log: CommitLog, *_: object) -> int:
    return log.segments.starts[-1] if log.segments.starts else 0


def _forget_last_record(log: CommitLog, start: int) -> int:
    ends = [end for end, stored in log.scan(start) if stored is not None]
    log.end = ends[-2] if len(ends) > 1 else start
    return log.end


def _keep_queue(queue: ConsumeQueue, _log: CommitLog) -> int:
    queue.find_end(lambda unit: unit.size > 0)
    return 0


def _offsets_from_zero(appender: Appender, topic: str, queue_id: int) -> int:
    return appender._queue_offsets.get((topic, queue_id), 0)


def _offsets_of_the_dispatched(appender: Appender, topic: str, queue_id: int) -> int:
    queue = appender._queues.find(topic, queue_id)
    return queue.end if queue else 0


def _checkpoint_ahead(writer: CheckpointWriter) -> Checkpoint:
    written = writer._log.store_timestamp_ms
    return Checkpoint(written, written, 0)


def refuse_without_place(segments: SegmentedFile) -> None:
    """Load, and refuse damaged files without naming them."""
    try:
        _load_segments(segments)
    except StoreError:
        raise StoreError("the files are damaged") from None


def _always_write_unit(queue: ConsumeQueue, queue_offset: int, unit: Unit) -> bool:
    _put_unit(queue, queue_offset, unit)
    return True


def _mutant(name: str, defect: str, breaks: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return Mutant(name, defect, "store-recovery", breaks, f"mqproof.impl.store.{where}", wrong)


MUTANTS: Final = (
    _mutant(
        "FailedFsyncCounts",
        "a failed fsync counts as a flush",
        "SyncAckedDurable",
        "flush:LogFlusher.round_failed",
        _count_failed_round,
    ),
    _mutant(
        "RecoveredLogNotSynced",
        "recovery treats data that a killed process left in the page cache as durable",
        "SyncAckedDurable",
        "recovery:sync_recovered_log",
        _nothing,
    ),
    _mutant(
        "LastRecordForgotten",
        "recovery stops one record too early",
        "AsyncAckedSurvivesProcessCrash",
        "recovery:find_end",
        _forget_last_record,
    ),
    _mutant(
        "ChecksumIgnored",
        "recovery does not check the body's checksum",
        "RecoveredPrefix",
        "files.record:body_is_whole",
        _always,
    ),
    _mutant(
        "TornTextKept",
        "recovery keeps a record whose properties were torn",
        "RecoveredPrefix",
        "files.record:text_is_whole",
        _always,
    ),
    _mutant(
        "PositionIgnored",
        "recovery accepts a record that was written for another position",
        "RecoveredPrefix",
        "files.record:stands_where_it_says",
        _always,
    ),
    _mutant(
        "QueueNotCut",
        "recovery leaves queue entries that point beyond the log",
        "QueuePointsIntoLog",
        "recovery:cut_queue",
        _keep_queue,
    ),
    _mutant(
        "OffsetsFromZero",
        "after recovery, the offsets of a queue restart at zero",
        "QueueOffsetsDense",
        "appender:Appender.next_queue_offset",
        _offsets_from_zero,
    ),
    _mutant(
        "OffsetOfTheDispatched",
        "a message gets the offset after the last dispatched message, not after the last appended one",
        "QueueOffsetsDense",
        "appender:Appender.next_queue_offset",
        _offsets_of_the_dispatched,
    ),
    _mutant(
        "NotDispatchedAgain",
        "recovery does not dispatch the records that the queues lack",
        "IndexRebuildable",
        "recovery:dispatch_again",
        _nothing,
    ),
    _mutant(
        "StartTooLate",
        "recovery always begins at the newest segment",
        "IndexRebuildable",
        "recovery:choose_start",
        _newest_segment,
    ),
    _mutant(
        "LostQueueUnnoticed",
        "recovery does not check whether queue files are missing",
        "IndexRebuildable",
        "recovery:queues_are_whole",
        _always,
    ),
    _mutant(
        "CheckpointAhead",
        "the checkpoint records the written position, not the durable one",
        "IndexRebuildable",
        "queue_flush:CheckpointWriter.checkpoint_now",
        _checkpoint_ahead,
    ),
    _mutant(
        "IndexNotRepaired",
        "after a crash, the slots of the index are not checked",
        "IndexRebuildable",
        "files.index_file:IndexFile.repair",
        _nothing,
    ),
    _mutant(
        "RefusalWithoutPlace",
        "damaged files are refused with an error that does not name the file",
        "DamageRefusedByName",
        "files.segments:SegmentedFile.load",
        refuse_without_place,
    ),
    _mutant(
        "TailNotCut",
        "recovery does not remove the data after the end of the log",
        "ServesAfterDamage",
        "recovery:cut_log",
        _nothing,
    ),
    _mutant(
        "EntriesAlwaysWritten",
        "recovery writes queue entries that already exist",
        "RecoveryIdempotent",
        "files.consume_queue:ConsumeQueue.put",
        _always_write_unit,
    ),
)
