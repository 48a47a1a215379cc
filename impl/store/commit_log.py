"""The commit log: all messages of all topics, one record after the other (docs/protocol.md, "Commit log")."""

from collections.abc import Iterator, Sequence
from typing import Final

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store import record
from mqproof.impl.store.record import RecordError
from mqproof.impl.store.segments import SegmentedFile, Unsynced

_STAGED_BYTES_MAX: Final = 1 << 20


class CommitLog:
    """`end` is where the next record goes, `flushed` up to where all is durable; both are commit offsets."""

    header_bytes = 0
    """What stands before each record, where the log is that of a group."""

    def __init__(self, segments: SegmentedFile) -> None:
        self.segments = segments
        self.end = 0
        self.flushed = 0
        self.last_record: int | None = None
        """Commit offset of the last record; None while there is none."""
        self.store_timestamp_ms = 0
        """Of the last record."""
        self.staged_timestamp_ms = 0
        """Of the last record that was staged."""
        self.flushed_timestamp_ms = 0
        """Store timestamp of the last record that is durable."""
        self._staged: list[bytearray] = []
        self._staged_at = 0
        self._staged_end = 0
        self._ahead_ms = 0
        """How far store timestamps are ahead of a clock that was set back."""

    @property
    def begin(self) -> int:
        return self.segments.begin

    @property
    def needed_from(self) -> int:
        """Commit offset from which on the log must stay, however old it is."""
        return self.end

    @property
    def record_bytes_max(self) -> int:
        """The largest record that fits a segment: there is always room for a filler behind it."""
        return self.segments.segment_bytes - record.FILLER_BYTES

    def append(self, draft: bytearray, queue_offset: int, now_ms: int) -> int:
        """Place and write one encoded record, as `append_batch` does."""
        return self.append_batch([draft], queue_offset, now_ms)

    def append_batch(self, drafts: Sequence[bytearray], queue_offset: int, now_ms: int) -> int:
        """`stage` and `write_staged`: afterwards the records are in the page cache, not durable."""
        position = self.stage(drafts, queue_offset, now_ms)
        self.write_staged()
        return position

    def append_stored(self, position: int, data: bytes, store_timestamp_ms: int) -> None:
        """Write a record as another log has it, where that one has it: at the end, or behind a filler at the
        start of the next segment. Raises OSError as `stage`."""
        self.write_staged()
        if position > self.end > self.begin:
            self.segments.write(self.end, record.filler(position - self.end))
        self.staged_timestamp_ms = store_timestamp_ms
        self._stage(position, [bytearray(data)], len(data))
        self.write_staged()

    def stage(self, drafts: Sequence[bytearray], queue_offset: int, now_ms: int) -> int:
        """Place encoded records of one queue, side by side; returns the first one's commit offset. They are
        in the log once `write_staged` has returned: many are written for the price of one.

        Raises:
            ValueError: they do not fit a segment. OSError: the disk failed; nothing is staged any more, and
                the log's end is where it was.
        """
        size = sum(map(len, drafts))
        if size > self.record_bytes_max:
            raise ValueError(
                f"{len(drafts)} record(s) of {size} bytes, {self.record_bytes_max} fit a segment"
            )
        position = place = self._room_for(size)
        self.staged_timestamp_ms = timestamp_ms = self.next_store_timestamp(now_ms)
        for number, draft in enumerate(drafts, queue_offset):
            record.place(draft, number, place, timestamp_ms)
            place += len(draft)
        self._stage(position, drafts, size)
        return position

    def write_staged(self) -> None:
        """Write what is staged. Raises OSError as `stage`."""
        staged, self._staged = self._staged, []
        if staged:
            self.segments.write(self._staged_at, staged[0] if len(staged) == 1 else b"".join(staged))
            self.end = self._staged_end
            self.last_record = self.end - len(staged[-1])
            self.store_timestamp_ms = self.staged_timestamp_ms

    def read(self, position: int, size: int) -> bytes:
        """The bytes at a commit offset; fewer or none when the log does not have them."""
        return self.segments.read(position, size)

    def scan(self, position: int) -> Iterator[tuple[int, StoredMessage | None]]:
        """Whole records from `position` on, each with the commit offset behind it; None stands for a filler
        that is followed by another segment. Ends at the first bytes that are neither."""
        while True:
            size, magic = record.peek(self.read(position, 8))
            room = self.segments.segment_bytes - position % self.segments.segment_bytes
            if magic == record.MAGIC_FILLER:
                # A filler at the very end of the log is not part of it: it will be overwritten.
                if size != room or position + room >= self.segments.capacity_end:
                    return
                position += room
                yield position, None
            else:
                stored = self.record_at(position, size) if record.SIZE_MIN < size <= room else None
                if stored is None:
                    return
                position += size
                yield position, stored

    def record_at(self, position: int, size: int) -> StoredMessage | None:
        """The record at a commit offset, or None when there is no whole one of that size."""
        try:
            return record.decode(self.read(position, size), position)
        except RecordError:
            return None

    def take_unsynced(self) -> Unsynced:
        return self.segments.take_unsynced()

    def _stage(self, position: int, drafts: Sequence[bytearray], size: int) -> None:
        if not self._staged:
            self._staged_at = position
        self._staged += drafts
        self._staged_end = position + size

    def _room_for(self, size: int) -> int:
        """Where a record of that size goes: behind what is staged, or at the start of the next segment behind
        a filler. What is staged is written together, so it stays within a segment and within bounds."""
        if self._staged and self._staged_end - self._staged_at > _STAGED_BYTES_MAX:
            self.write_staged()
        end = self._staged_end if self._staged else self.end
        room = self.segments.segment_bytes - end % self.segments.segment_bytes
        if size + record.FILLER_BYTES <= room:
            return end
        self.write_staged()
        self.segments.write(end, record.filler(room))
        return end + room

    def next_store_timestamp(self, now_ms: int) -> int:
        """Store timestamps never go back, whatever the clock does: recovery chooses its start by them.

        While the clock is behind the last record, time goes on from that record at the clock's pace, so that
        a delayed message waits as long as it should.
        """
        behind_ms = max(self.store_timestamp_ms, self.staged_timestamp_ms) - now_ms
        self._ahead_ms = max(self._ahead_ms, behind_ms) if behind_ms > 0 else 0
        return now_ms + self._ahead_ms
