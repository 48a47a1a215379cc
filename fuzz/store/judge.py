"""Holds a recovered store to the truth: the invariants of the flush slice, on real files.

One function an invariant, named as in the catalogue. Each looks at a store after its recovery, returns
whether there was anything to judge, and raises Finding when the invariant is broken.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mqproof.fuzz.store.simulated_store import LOG_SEGMENT_BYTES, QUEUES, Appended
from mqproof.fuzz.target import Finding
from mqproof.impl.store import record
from mqproof.impl.store.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class Recovered:
    """A store that was just recovered, and what is known of it."""

    store: MessageStore
    truth: tuple[Appended, ...]
    """What had been appended, in the order of the log."""
    durable_end: int
    """Commit offset up to which the store had said that its log is durable."""
    end: int
    """Commit offset where the log ends now."""
    truncated: bool
    process_only: bool = False
    """The process died, the operating system lived on."""
    garbage: bool = False
    """The disk had garbage behind the durable part. The format has no checksum but for bodies."""

    @property
    def kept(self) -> list[Appended]:
        """What is in the log now, by its end."""
        return [each for each in self.truth if each.end <= self.end]

    def of(self, queue: tuple[str, int]) -> list[Appended]:
        """What is in the log now of one queue."""
        return [each for each in self.kept if each.queue == queue]


def sync_acked_durable(after: Recovered) -> bool:
    """What the store had said is durable is in the log, byte for byte: under SYNC_FLUSH that was said before
    any answer."""
    return _nothing_missing(after, "SyncAckedDurable", after.durable_end)


def async_acked_survives_process_crash(after: Recovered) -> bool:
    """Whatever had been appended is in the log when only the process died."""
    everything = after.truth[-1].end if after.truth and after.process_only else 0
    return _nothing_missing(after, "AsyncAckedSurvivesProcessCrash", everything)


def recovered_prefix(after: Recovered) -> bool:
    """The log holds a prefix of what had been appended, nothing altered or invented."""
    kept = after.kept
    for each in kept:
        data = after.store.record_at(each.commit_offset)
        if not _is_the_same(after, each, data):
            raise Finding("RecoveredPrefix", f"altered: {_words(each)}")
    ends = {0, *(each.end for each in after.truth)}
    if after.end not in ends | {-(-end // LOG_SEGMENT_BYTES) * LOG_SEGMENT_BYTES for end in ends}:
        raise Finding("RecoveredPrefix", f"the log ends at {after.end}, where no record ever ended: invented")
    return len(kept) < len(after.truth) or after.truncated or after.garbage


def queue_offsets_dense(after: Recovered) -> bool:
    """The records of a queue have the offsets 0, 1, 2, ..., and the next message gets the one behind."""
    for queue in QUEUES:
        offsets = [each.queue_offset for each in after.of(queue)]
        if offsets != list(range(len(offsets))):
            raise Finding("QueueOffsetsDense", f"{queue} has offsets {offsets}")
        offset_next = after.store.next_queue_offset(*queue)
        # A queue of another length breaks an invariant of its own.
        if offset_next != len(offsets) == after.store.max_offset(*queue):
            raise Finding("QueueOffsetsDense", f"{queue} has offsets {offsets}, and {offset_next} is next")
    return bool(after.kept)


def queue_points_into_log(after: Recovered) -> bool:
    """Each entry of a queue points at the whole record of its topic, queue and offset."""
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
    """Every record in the log can be read through its queue, and found by its key."""
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
"""A crash only takes what was not durable: every invariant holds in full."""

DESPITE_GARBAGE: Final = {name: AFTER_A_CRASH[name] for name in ("SyncAckedDurable", "RecoveredPrefix")}


def judge(after: Recovered, checked: Counter[str]) -> None:
    """Hold the store to what is promised. Raises Finding for the first invariant that is broken."""
    for name, check in (DESPITE_GARBAGE if after.garbage else AFTER_A_CRASH).items():
        checked[name] += check(after)


def _nothing_missing(after: Recovered, invariant: str, safe_end: int) -> bool:
    """Everything up to the commit offset `safe_end` is in the log as it was appended."""
    required = [each for each in after.truth if each.end <= safe_end]
    for each in required:
        if each.end > after.end or after.store.record_at(each.commit_offset) != each.data:
            text = f"the log ends at {after.end}; gone is {_words(each)}, safe up to {safe_end}"
            raise Finding(invariant, text)
    return bool(required)


def _is_the_same(after: Recovered, each: Appended, data: bytes | None) -> bool:
    if after.garbage and each.end > after.durable_end:
        return data is None or record.decode(data).message.body == each.body
    return data == each.data


def _words(each: Appended) -> str:
    name = each.body.rstrip(b".").decode()
    return f"{name} of {each.queue} {each.queue_offset} at {each.commit_offset} to {each.end}"
