"""Compares a recovered store with the recorded truth: the invariants of the flush slice, on real files.

There is one function per invariant, named as in the catalogue. Each inspects a store after its recovery,
returns whether there was anything to judge, and raises Finding when the invariant is violated.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqproof.fuzz.store.simulated_store import LOG_SEGMENT_BYTES, QUEUES, Appended
from mqproof.fuzz.target import Finding
from mqproof.impl.store.files import record
from mqproof.impl.store.files.record import RecordError
from mqproof.impl.store.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class Recovered:
    """A store that was just recovered, and the known facts about it."""

    store: MessageStore
    truth: tuple[Appended, ...]
    """The records that had been appended, in log order."""
    durable_end: int
    """The commit offset up to which the store had reported its log as durable."""
    end: int
    """The commit offset where the log ends now."""
    truncated: bool
    process_only: bool = False
    """Whether only the process ended and the operating system kept running."""
    garbage: bool = False
    """Whether the disk had garbage after the durable part. The format has checksums for bodies only."""

    @property
    def kept(self) -> list[Appended]:
        """The appended records that end within the current log."""
        return [each for each in self.truth if each.end <= self.end]

    def of(self, queue: tuple[str, int]) -> list[Appended]:
        """Return the records of one queue that are in the log now."""
        return [each for each in self.kept if each.queue == queue]


def sync_acked_durable(after: Recovered) -> bool:
    """Check that the data the store had reported as durable is in the log, byte for byte.

    Under SYNC_FLUSH the store reports this before any answer.
    """
    return _nothing_missing(after, "SyncAckedDurable", after.durable_end)


def async_acked_survives_process_crash(after: Recovered) -> bool:
    """Check that every appended record is in the log when only the process ended."""
    everything = after.truth[-1].end if after.truth and after.process_only else 0
    return _nothing_missing(after, "AsyncAckedSurvivesProcessCrash", everything)


def recovered_prefix(after: Recovered) -> bool:
    """Check that the log holds a prefix of the appended records, with nothing altered or invented."""
    kept = after.kept
    for each in kept:
        data = _in_log(after, each)
        if not _is_the_same(after, each, data):
            raise Finding("RecoveredPrefix", f"altered: {_words(each)}")
    ends = {0, *(each.end for each in after.truth)}
    if after.end not in ends | {-(-end // LOG_SEGMENT_BYTES) * LOG_SEGMENT_BYTES for end in ends}:
        raise Finding("RecoveredPrefix", f"the log ends at {after.end}, where no record ever ended: invented")
    return len(kept) < len(after.truth) or after.truncated or after.garbage


def queue_offsets_dense(after: Recovered) -> bool:
    """Check that the records of a queue have the offsets 0, 1, 2, ..., and that the next offset follows."""
    for queue in QUEUES:
        offsets = [each.queue_offset for each in after.of(queue)]
        if offsets != list(range(len(offsets))):
            raise Finding("QueueOffsetsDense", f"{queue} has offsets {offsets}")
        offset_next = after.store.next_queue_offset(*queue)
        # A wrong queue length violates a different invariant.
        if offset_next != len(offsets) == after.store.max_offset(*queue):
            raise Finding("QueueOffsetsDense", f"{queue} has offsets {offsets}, and {offset_next} is next")
    return bool(after.kept)


def queue_points_into_log(after: Recovered) -> bool:
    """Check that each entry of a queue points at the whole record with its topic, queue and offset."""
    for queue in QUEUES:
        expected = {each.queue_offset: each for each in after.of(queue)}
        begin, end = after.store.min_offset(*queue), after.store.max_offset(*queue)
        for offset in range(begin, min(end, len(after.truth) + 1)):
            records = after.store.get(*queue, offset, 1).records
            if offset not in expected or records != (expected[offset].data,):
                text = f"{queue} goes from {begin} to {end}, the log has {len(expected)}; wrong is {offset}"
                raise Finding("QueuePointsIntoLog", text)
    return bool(after.kept)


def index_rebuildable(after: Recovered) -> bool:
    """Check that every record in the log can be read through its queue and found by its key."""
    for each in after.kept:
        found = after.store.find(each.queue[0], each.key, 2, 0, 1 << 62)
        if found != [each.data]:
            raise Finding("IndexRebuildable", f"the index has {len(found)} of {each.key}: {_words(each)}")
        got = after.store.get(*each.queue, each.queue_offset, 1)
        if got.records != (each.data,):
            text = f"{each.queue} goes from {got.min_offset} to {got.max_offset}, {got.status}"
            raise Finding("IndexRebuildable", f"{text}; cannot be read: {_words(each)}")
    return bool(after.kept)


Check = Callable[[Recovered], bool]

AFTER_A_CRASH: Final[dict[str, Check]] = {
    "SyncAckedDurable": sync_acked_durable,
    "AsyncAckedSurvivesProcessCrash": async_acked_survives_process_crash,
    "RecoveredPrefix": recovered_prefix,
    "QueueOffsetsDense": queue_offsets_dense,
    "QueuePointsIntoLog": queue_points_into_log,
    "IndexRebuildable": index_rebuildable,
}
"""A crash removes only data that was not durable, so every invariant must hold in full."""

DESPITE_GARBAGE: Final = {name: AFTER_A_CRASH[name] for name in ("SyncAckedDurable", "RecoveredPrefix")}


def judge(after: Recovered, checked: Counter[str]) -> None:
    """Check the store against its promises. Raises Finding for the first invariant that is violated."""
    for name, check in (DESPITE_GARBAGE if after.garbage else AFTER_A_CRASH).items():
        checked[name] += check(after)


def _nothing_missing(after: Recovered, invariant: str, safe_end: int) -> bool:
    """Check that every record up to the commit offset `safe_end` is in the log as it was appended."""
    required = [each for each in after.truth if each.end <= safe_end]
    for each in required:
        if each.end > after.end or _in_log(after, each) != each.data:
            text = f"the log ends at {after.end}; gone is {_words(each)}, safe up to {safe_end}"
            raise Finding(invariant, text)
    return bool(required)


def _in_log(after: Recovered, each: Appended) -> bytes | None:
    """Return the record as it is in the log, whether a queue has it or not; None if it is not whole."""
    data = after.store.log_read(each.commit_offset, len(each.data))
    try:
        record.decode(data, each.commit_offset)
    except RecordError:
        return None
    return data


def _is_the_same(after: Recovered, each: Appended, data: bytes | None) -> bool:
    if after.garbage and each.end > after.durable_end:
        return data is None or record.decode(data).message.body == each.body
    return data == each.data


def _words(each: Appended) -> str:
    name = each.body.rstrip(b".").decode()
    return f"{name} of {each.queue} {each.queue_offset} at {each.commit_offset} to {each.end}"
