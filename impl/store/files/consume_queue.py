"""Consume queues: the commit offset of each message of a queue.

See docs/reference/protocol/storing.md, "Consume queue". They hold nothing that the commit log does not: every
entry can be computed again from it.
"""

import bisect
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store.config import QUEUE_UNIT_BYTES
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.segments import Removal, SegmentedFile, Unsynced

_UNIT: Final = struct.Struct(">qiq")
_BLANK: Final = _UNIT.pack(0, (1 << 31) - 1, 0)
"""The unit before the first entry, in a queue whose first entry is not at the start of a segment."""
assert _UNIT.size == QUEUE_UNIT_BYTES

QueueKey = tuple[str, int]
"""Topic and queue id."""

pack_unit: Final = _UNIT.pack
"""Returns the bytes of an entry with a commit offset, a size and a tags code."""

_as_unit: Final = tuple.__new__
"""Makes a unit of a tuple, as `Unit._make`, in half of the time."""


class Unit(NamedTuple):
    """An entry of a consume queue."""

    commit_offset: int
    size: int
    """The size of the record in bytes; 0 in a unit that was never written."""
    tags_code: int


class QueueGapError(Exception):
    """An entry would leave a gap before the queue's begin or after its end.

    The message names its directory.
    """


class ConsumeQueue:
    """Entries by queue offset, without gaps from `begin` to `end` (exclusive).

    The records of the entries before `first` are no longer in the log.
    """

    def __init__(self, key: QueueKey, segments: SegmentedFile) -> None:
        self.key = key
        self.first = 0
        self.end = 0
        self.segments = segments

    @property
    def begin(self) -> int:
        return self.segments.begin // QUEUE_UNIT_BYTES

    @property
    def last(self) -> Unit | None:
        """The last entry; None if there is none. Raises OSError."""
        return self.units(self.end - 1, 1)[0] if self.end > self.begin else None

    def put(self, queue_offset: int, unit: Unit) -> bool:
        """Write the entry; return whether a different entry or none was there before.

        An equal entry is written again too, because an earlier sync of it may have failed.

        Raises:
            QueueGapError: entries beside it are missing. OSError: the disk failed.
        """
        changed = self.units(queue_offset, 1) != [unit]
        self.write(queue_offset, [unit])
        self.end = max(self.end, queue_offset + 1)
        return changed

    def write(self, queue_offset: int, units: Sequence[Unit]) -> None:
        """Write consecutive entries like `write_packed`."""
        self.write_packed(queue_offset, b"".join([pack_unit(*unit) for unit in units]))

    def write_packed(self, queue_offset: int, data: bytes) -> None:
        """Write consecutive entries, as `pack_unit` returns them. Readers see them once `end` is after them.

        Raises:
            QueueGapError: entries before them are missing. OSError: the disk failed.
        """
        if not self.begin <= queue_offset <= self.end:
            raise QueueGapError(
                f"{self.segments.directory}: the queue goes from {self.begin} to {self.end},"
                f" entry {queue_offset} would leave a gap"
            )
        position = queue_offset * QUEUE_UNIT_BYTES
        while data:
            room = self.segments.segment_bytes - position % self.segments.segment_bytes
            self.segments.write(position, data[:room])
            position, data = position + room, data[room:]

    def units(self, queue_offset: int, count: int) -> list[Unit]:
        """Return at most `count` entries from `queue_offset` on; fewer at the end of a segment."""
        return [_as_unit(Unit, entry) for entry in _UNIT.iter_unpack(self.raw(queue_offset, count))]

    def fields(self, queue_offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Iterate over the same entries as plain tuples, which reads need and which cost far less."""
        return _UNIT.iter_unpack(self.raw(queue_offset, count))

    def raw(self, queue_offset: int, count: int) -> bytes:
        """Return the bytes of the same entries as `units`."""
        position = queue_offset * QUEUE_UNIT_BYTES
        size = max(0, min(count, self.end - queue_offset) * QUEUE_UNIT_BYTES)
        data = self.segments.read(position, size)
        if len(data) < size:
            # The segment ends here, or its file was cut: then the entries that it lost read as zero.
            room = self.segments.segment_bytes - position % self.segments.segment_bytes
            return data.ljust(min(size, room) if self.segments.has(position) else 0, b"\0")
        return data

    def find_end(self, is_good: Callable[[Unit], bool]) -> int:
        """Set `end` to the capacity and return the offset after the good entries, if these are a prefix.

        If they are not a prefix, the result is the end of some run of good entries.
        """
        self.end = self.segments.capacity_end // QUEUE_UNIT_BYTES
        offsets = range(self.begin, self.end)
        return self.begin + bisect.bisect_left(offsets, True, key=lambda o: not is_good(self.units(o, 1)[0]))

    def find(self, commit_offset: int) -> int:
        """Return the queue offset of the first entry for a record at or after the commit offset."""
        offsets = range(self.begin, self.end)
        # The common cases for checkpoints of many queues: an offset beyond the last entry, or the log's first
        # one.
        if offsets and self._commit_offset(offsets[-1]) < commit_offset:
            return self.end
        if self.first in offsets and self._is_first_of(self.first, commit_offset):
            return self.first
        return self.begin + bisect.bisect_left(offsets, commit_offset, key=self._commit_offset)

    def count_between(self, begin: int, end: int) -> int:
        """Return the number of entries for records from one commit offset to before another."""
        return max(0, self.find(end) - self.find(begin))

    def expire(self, log_begin: int) -> Removal:
        """Detach the segments of entries whose records are no longer in the log; return them."""
        return self.segments.detach_before(self.find(log_begin) * QUEUE_UNIT_BYTES)

    def clear(self) -> None:
        """Remove all entries and files: the queue begins again at 0."""
        self.first = self.end = 0
        self.segments.clear()

    def begin_at(self, queue_offset: int) -> None:
        """Let an empty queue begin at this offset: the entries before it are lost with their records."""
        assert self.end == 0, f"{self.segments.directory} has entries"
        position = queue_offset * QUEUE_UNIT_BYTES
        start = position - position % self.segments.segment_bytes
        self.segments.write(start, _BLANK * ((position - start) // QUEUE_UNIT_BYTES))
        self.first = self.end = queue_offset

    def cut(self, queue_offset: int) -> int:
        """Remove the entries from `queue_offset` on; return how many there were."""
        self.end = queue_offset
        return -(-self.segments.cut(queue_offset * QUEUE_UNIT_BYTES) // QUEUE_UNIT_BYTES)

    def _is_first_of(self, queue_offset: int, commit_offset: int) -> bool:
        if self._commit_offset(queue_offset) < commit_offset:
            return False
        return queue_offset == self.begin or self._commit_offset(queue_offset - 1) < commit_offset

    def _commit_offset(self, queue_offset: int) -> int:
        (unit,) = self.units(queue_offset, 1)
        return unit.commit_offset


class ConsumeQueues:
    """All queues of a store, by topic and queue id. A queue exists once a message was dispatched to it."""

    def __init__(self, disk: Disk, directory: str, segment_bytes: int) -> None:
        self.directory = directory
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._queues: dict[QueueKey, ConsumeQueue] = {}

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(self._queues.values())

    def __len__(self) -> int:
        return len(self._queues)

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get((topic, queue_id))

    def find_or_make(self, topic: str, queue_id: int) -> ConsumeQueue:
        key = (topic, queue_id)
        queue = self._queues.get(key)
        if queue is None:
            directory = f"{self.directory}/{topic}/{queue_id}"
            queue = ConsumeQueue(key, SegmentedFile(self._disk, directory, self._segment_bytes))
            self._queues[key] = queue
        return queue

    def has(self, topic: str) -> bool:
        """Return whether there is a queue of the topic."""
        return any(name == topic for name, _ in self._queues)

    def remove(self, topic: str, before: int) -> None:
        """Remove durably the topic's queues in which all entries point before that commit offset.

        Empty directories stay. Raises OSError.
        """
        for key in [key for key in self._queues if key[0] == topic]:
            last = self._queues[key].last
            if last is None or last.commit_offset < before:
                self._queues.pop(key).clear()

    def count_between(self, begin: int, end: int) -> int:
        """Return the number of entries in all queues for records between two commit offsets."""
        return sum(queue.count_between(begin, end) for queue in self)

    def load(self) -> None:
        """Open the existing queues; `end` of each is determined later.

        Raises:
            StoreError: a name that is not a queue id, or as SegmentedFile.load.
        """
        for topic in self._disk.names(self.directory):
            topic_directory = f"{self.directory}/{topic}"
            if not self._disk.is_directory(topic_directory):
                raise StoreError(f"{topic_directory}: not a directory, one for each topic expected")
            for name in self._disk.names(topic_directory):
                path = f"{topic_directory}/{name}"
                if not (name.isascii() and name.isdecimal()) or not self._disk.is_directory(path):
                    raise StoreError(f"{path}: not a queue, a directory named by its number expected")
                self.find_or_make(topic, int(name)).segments.load()

    def entries_from(self, commit_offset: int, count: int) -> list[tuple[ConsumeQueue, int]]:
        """Return queue and offset of `count` records in the order of the log.

        The first one is the record that contains the commit offset, or else the next one that a queue has.
        """
        near: list[tuple[int, int, int, ConsumeQueue]] = []
        for number, queue in enumerate(self):
            at = queue.find(commit_offset)
            for offset in range(max(queue.first, at - 1), min(at + count, queue.end)):
                (unit,) = queue.units(offset, 1)
                near.append((unit.commit_offset, number, offset, queue))
        near.sort()
        before = sum(begin <= commit_offset for begin, *_ in near)
        return [(queue, offset) for *_, offset, queue in near[max(before - 1, 0) :][:count]]

    def take_unsynced(self) -> list[Unsynced]:
        return [queue.segments.take_unsynced() for queue in self if queue.segments.has_unsynced]

    def close(self) -> None:
        for queue in self:
            queue.segments.close()
