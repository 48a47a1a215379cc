"""The commit log: all messages of all topics, one record after the other.

See docs/reference/protocol/storing.md, "Commit log".
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.files import record
from mqproof.impl.store.files.batch_records import BatchRecords
from mqproof.impl.store.files.record import RecordError
from mqproof.impl.store.files.segments import SegmentedFile, Unsynced

_STAGED_BYTES_MAX: Final = 1 << 20
_SEARCHED_BYTES: Final = 1 << 16
_MAGIC: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big")) for magic in (*sorted(record.MAGICS), record.MAGIC_FILLER))
)
_BLANK: Final = bytes(_SEARCHED_BYTES)
_SIZE_TRUSTED: Final = 1 << 16
"""Up to this size, a record is read before its own size is compared."""


class CommitLog:
    """The log of one store.

    `end` is where the next record goes, `flushed` is where the durable part ends; both are commit offsets.
    """

    header_bytes = 0
    """The size of the header before each record in the log of a group; 0 in other logs."""

    def __init__(self, segments: SegmentedFile) -> None:
        self.segments = segments
        self.record_bytes_max = segments.segment_bytes - record.FILLER_BYTES
        """The largest record that fits in a segment with a filler after it."""
        self.end = 0
        self.flushed = 0
        self.last_record: int | None = None
        """Commit offset of the last record; None while there is none."""
        self.store_timestamp_ms = 0
        """Store timestamp of the last record."""
        self.staged_timestamp_ms = 0
        """Store timestamp of the last staged record."""
        self.flushed_timestamp_ms = 0
        """Store timestamp of the last record that is durable."""
        self.known_end = 0
        """Commit offset before which the log is known to be durable, by the checkpoint or the queue entries.

        Bytes before it that are not a record are damaged; a crash cannot explain them.
        """
        self.on_damage: Callable[[int, int], None] = lambda _begin, _end: None
        """Called with the commit offsets of each damaged part, when it is first found."""
        self.is_listed: Callable[[StoredMessage], bool] = lambda _stored: True
        """Returns whether the queue that a record names has an entry for it."""
        self._damaged: dict[int, int] = {}
        """The damaged parts: where each begins and ends."""
        self._staged: list[bytes | bytearray] = []
        self._staged_last_bytes = 0
        """The size of the last staged record."""
        self._staged_at = 0
        self._staged_end = 0
        self._ahead_ms = 0
        """How far store timestamps are ahead of a clock that was set back."""

    @property
    def begin(self) -> int:
        return self.segments.begin

    @property
    def needed_from(self) -> int:
        """The commit offset from which the log must be kept, however old it is."""
        return self.end

    def stage_stored(self, position: int, data: bytes, store_timestamp_ms: int) -> None:
        """Stage a record of another log at its position there.

        The position is the end of what is staged or written, or the start of the next segment after a filler.
        Raises OSError as `stage`.
        """
        if position != self._staged_end:
            self.write_staged()
            if position > self.end > self.begin:
                self.segments.write(self.end, record.filler(position - self.end))
        self.staged_timestamp_ms = store_timestamp_ms
        self._stage(position, [data], len(data), len(data))

    def stage(self, drafts: Sequence[bytearray], queue_offset: int, now_ms: int) -> int:
        """Place encoded records of one queue one after the other; return the first one's commit offset.

        They are in the log once `write_staged` has returned, so that many records cost one write.

        Raises:
            ValueError: they do not fit in a segment. OSError: the disk failed; nothing is staged any more,
                and the log's end is unchanged.
        """
        size = len(drafts[0]) if len(drafts) == 1 else sum(map(len, drafts))
        position = place = self._begin(len(drafts), size, now_ms)
        timestamp_ms = self.staged_timestamp_ms
        for number, draft in enumerate(drafts, queue_offset):
            record.place(draft, number, place, timestamp_ms)
            place += len(draft)
        self._stage(position, drafts, size, len(drafts[-1]))
        return position

    def stage_batch(self, records: BatchRecords, queue_offset: int, now_ms: int) -> int:
        """Place the records of a batch, like `stage`."""
        size = sum(records.sizes)
        position = self._begin(len(records.sizes), size, now_ms)
        data = records.placed(queue_offset, position, self.staged_timestamp_ms)
        self._stage(position, [data], size, records.sizes[-1])
        return position

    def write_staged(self) -> None:
        """Write the staged records. Raises OSError as `stage`."""
        staged, self._staged = self._staged, []
        if staged:
            self.segments.write(self._staged_at, staged[0] if len(staged) == 1 else b"".join(staged))
            self.end = self._staged_end
            self.last_record = self.end - self._staged_last_bytes
            self.store_timestamp_ms = self.staged_timestamp_ms

    def replace_record(self, position: int, data: bytes) -> None:
        """Write a whole record in place of damaged bytes. Raises OSError; it is not durable yet."""
        self.segments.write(position, data)
        self._damaged = {begin: end for begin, end in self._damaged.items() if not begin <= position < end}

    def read(self, position: int, size: int) -> bytes:
        """Return the bytes at a commit offset; fewer or none when the log does not have them."""
        return self.segments.read(position, size)

    def read_record(self, position: int, size: int) -> bytes:
        """Return the bytes of the record with that place and size, which may come from a damaged file.

        The result is empty if a record cannot have them. A large size is compared with the record first, so
        that a damaged one occupies no memory.
        """
        if position < 0 or size < record.SIZE_MIN:
            return b""
        if size > _SIZE_TRUSTED and record.peek(self.read(position, 8))[0] != size:
            return b""
        return self.read(position, size)

    def scan(self, position: int) -> Iterator[tuple[int, StoredMessage | None]]:
        """Yield whole records from `position` on, each with the commit offset after it.

        None in place of a record stands for a filler that is followed by another segment, and for a damaged
        part. The scan ends at the first bytes that are neither.
        """
        while True:
            size, magic = record.peek(self.read(position, 8))
            stored: StoredMessage | None = None
            if position in self._damaged:
                position = self._damaged[position]
            elif (
                self._is_filler(position, size, magic) or (stored := self._whole(position, size)) is not None
            ):
                position += size
            elif (end := self._after_damage(position)) is not None:
                position = end
            else:
                return
            yield position, stored

    def is_damaged(self, position: int) -> bool:
        """Return whether the commit offset is in a damaged part that was found."""
        return any(begin <= position < end for begin, end in self._damaged.items())

    def mark_damaged(self, begin: int, end: int) -> None:
        """Let scans pass over a record that looks whole and is not what was written."""
        self._damaged[begin] = end
        self.on_damage(begin, end)

    def next_whole(self, position: int) -> int | None:
        """Return the commit offset of the next record after these bytes, which are none; None without one."""
        limit = self.segments.capacity_end
        found = self._next_whole(position, limit)
        return found if found < limit else None

    def _is_filler(self, position: int, size: int, magic: int) -> bool:
        """Return whether a filler is there.

        A filler at the very end of the log does not belong to it: it will be overwritten.
        """
        room = self.segments.segment_bytes - position % self.segments.segment_bytes
        return magic == record.MAGIC_FILLER and size == room and position + room < self.segments.capacity_end

    def _whole(self, position: int, size: int) -> StoredMessage | None:
        room = self.segments.segment_bytes - position % self.segments.segment_bytes
        return self.record_at(position, size) if record.SIZE_MIN < size <= room else None

    def _after_damage(self, position: int) -> int | None:
        """Return where a damaged part ends that begins here; None if this is the end of the log."""
        limit = max(self.known_end, self.end)
        if position >= limit:
            return None
        if position not in self._damaged:
            self._damaged[position] = end = self._next_whole(position, limit)
            self.on_damage(position, end)
        return self._damaged[position]

    def _next_whole(self, position: int, limit: int) -> int:
        """Return the commit offset of the next record or filler after damage; `limit` if there is none.

        Each record has its own commit offset and the CRC of its body, so it can be recognised anywhere.
        """
        size, _ = record.peek(self.read(position, 8))
        if size > record.SIZE_MIN and position + size <= limit and self._begins(position + size):
            return position + size
        at, segment_bytes = position, self.segments.segment_bytes
        while at < limit:
            data = self.read(at, min(_SEARCHED_BYTES, limit - at))
            # Most of the last segment is zero bytes, and comparing them is far faster than a search.
            for found in () if data == _BLANK else _MAGIC.finditer(data):
                begin = at + found.start() - 4
                if begin > position and self._begins(begin):
                    return begin
            is_last_part = at % segment_bytes + _SEARCHED_BYTES >= segment_bytes
            at = at - at % segment_bytes + segment_bytes if is_last_part else at + _SEARCHED_BYTES - 8
        return limit

    def _begins(self, position: int) -> bool:
        """Return whether a whole record or a filler is there."""
        size, magic = record.peek(self.read(position, 8))
        return self._is_filler(position, size, magic) or self._whole(position, size) is not None

    def record_at(self, position: int, size: int) -> StoredMessage | None:
        """Return the record at a commit offset, or None if there is no whole record of that size."""
        return self.decode(self.read(position, size), position)

    def decode(self, data: bytes, position: int) -> StoredMessage | None:
        """Return the record in the bytes found at a commit offset, or None if it is not whole."""
        try:
            return record.decode(data, position)
        except RecordError:
            return None

    def take_unsynced(self) -> Unsynced:
        return self.segments.take_unsynced()

    def _begin(self, count: int, size: int, now_ms: int) -> int:
        """Return the position for records of that size, and determine their store timestamp."""
        if size > self.record_bytes_max:
            raise ValueError(f"{count} record(s) of {size} bytes, {self.record_bytes_max} fit a segment")
        position = self._room_for(size)
        self.staged_timestamp_ms = self.next_store_timestamp(now_ms)
        return position

    def _stage(self, position: int, data: Sequence[bytes | bytearray], size: int, last_bytes: int) -> None:
        if not self._staged:
            self._staged_at = position
        self._staged += data
        self._staged_end = position + size
        self._staged_last_bytes = last_bytes

    def _room_for(self, size: int) -> int:
        """Return the position for a record of that size.

        It is after the staged records, or at the start of the next segment after a filler. The staged records
        are written together, so they stay within one segment and within a size limit.
        """
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
        """Return the next store timestamp.

        Timestamps never decrease, because recovery chooses its start by them.

        While the clock is behind the last record, timestamps continue from that record at the clock's pace,
        so that a delayed message waits for the right time.
        """
        behind_ms = max(self.store_timestamp_ms, self.staged_timestamp_ms) - now_ms
        self._ahead_ms = max(self._ahead_ms, behind_ms) if behind_ms > 0 else 0
        return now_ms + self._ahead_ms
