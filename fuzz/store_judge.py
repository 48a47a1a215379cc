"""Holds a recovered store to the truth: the invariants of the flush slice, on real files."""

from collections import Counter

from fuzz.store_lab import LOG_SEGMENT_BYTES, QUEUES, Appended, Lab
from fuzz.target import Finding
from impl.store import record
from impl.store.results import Recovery


class Judge:
    """Holds a recovered store to the truth, and counts what was put to the test."""

    def __init__(self, lab: Lab, checked: Counter[str]) -> None:
        self._lab = lab
        self._checked = checked

    def whole(self, recovery: Recovery, must_end: int, must_be: str) -> None:
        """After crashes, which only take what was not durable: every invariant holds in full.

        Args:
            must_end: commit offset up to which nothing may be missing.
            must_be: the invariant that says so.
        """
        kept = self.prefix(recovery, must_end, must_be)
        self._queues(kept)

    def prefix(self, recovery: Recovery, must_end: int, must_be: str) -> list[Appended]:
        """The log holds a prefix of what was appended, at least up to `must_end`, byte for byte."""
        truth, end = self._lab.truth, recovery.recovered_end
        kept = [each for each in truth if each.end <= end]
        self._checked["RecoveredPrefix"] += len(kept) < len(truth) or recovery.truncated_bytes > 0
        required = [each for each in truth if each.end <= must_end]
        self._checked[must_be] += bool(required)
        if len(kept) < len(required):
            missing = required[len(kept)]
            raise Finding(must_be, f"the log ends at {end}; gone is {_words(missing)}, safe up to {must_end}")
        for each in kept:
            if self._lab.store.record_at(each.commit_offset) != each.data:
                raise Finding("RecoveredPrefix", f"altered: {_words(each)}")
        self._no_inventions(end)
        return kept

    def despite_garbage(self, recovery: Recovery, must_end: int) -> None:
        """After garbage behind the durable part: everything durable is in the log as it was, and no body that
        was not sent. (The format has no checksum for the rest of a record.)"""
        store, truth, end = self._lab.store, self._lab.truth, recovery.recovered_end
        for each in truth:
            data = store.record_at(each.commit_offset) if each.end <= end else None
            if each.end <= must_end:
                self._checked["SyncAckedDurable"] += 1
                if data != each.data:
                    raise Finding("SyncAckedDurable", f"damage behind {must_end} took {_words(each)}")
            elif data is not None and record.decode(data).message.body != each.body:
                raise Finding("RecoveredPrefix", f"altered: {_words(each)}")
        self._checked["RecoveredPrefix"] += end > must_end or recovery.truncated_bytes > 0
        self._no_inventions(end)

    def _no_inventions(self, end: int) -> None:
        """The log ends behind a record that was appended, or behind the filler that follows it."""
        ends = {0, *(each.end for each in self._lab.truth)}
        if end not in ends | {-(-each // LOG_SEGMENT_BYTES) * LOG_SEGMENT_BYTES for each in ends}:
            raise Finding("RecoveredPrefix", f"the log ends at {end}, where no record ever ended: invented")

    def _queues(self, kept: list[Appended]) -> None:
        store = self._lab.store
        for queue in QUEUES:
            expected = [each for each in kept if each.queue == queue]
            begin, end = store.min_offset(*queue), store.max_offset(*queue)
            self._checked["QueueOffsetsDense"] += bool(expected)
            if end > len(expected):
                raise Finding("QueuePointsIntoLog", f"{queue} ends at {end}, the log has {len(expected)}")
            for each in expected:
                self._checked["QueuePointsIntoLog"] += 1
                got = store.get(*queue, each.queue_offset, 1)
                if got.records == (each.data,):
                    continue
                if got.records:
                    raise Finding("QueuePointsIntoLog", f"{queue} {each.queue_offset} is not {_words(each)}")
                text = f"{queue} goes from {begin} to {end}, {got.status}; cannot be read: {_words(each)}"
                raise Finding("IndexRebuildable", text)
            self._checked["IndexRebuildable"] += bool(expected)


def _words(each: Appended) -> str:
    name = each.body.rstrip(b".").decode()
    return f"{name} of {each.queue} {each.queue_offset} at {each.commit_offset} to {each.end}"
