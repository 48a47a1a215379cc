"""A member's entries on disk: data segments, and an index that has the position of each entry.

The index can be derived from the data. It is written late, and synced when a data segment is full. Recovery
walks the last three segments, so it can write the missing part of the index again.
"""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mqproof.impl.dledger import entry_format
from mqproof.impl.dledger.entry_format import FILLER_BYTES, UNIT_BYTES, EntryError
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, Entry
from mqproof.impl.dledger.terms import Terms
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.segments import Removal, SegmentedFile, Unsynced, sync_all

_WALKED_SEGMENTS: Final = 3
_IN_DOUBT_BYTES: Final = 64 << 20
"""The maximum number of bytes written without a sync, and of bytes written again at a start.

The sync of an earlier process may have failed. A later sync that succeeds proves nothing about data that was
written before that failure.
"""
_REPLACE: Final = "replace this member, or restore the file from a backup"
_UNITS_BYTES_MAX: Final = 64 << 10
_RECENT_BYTES_MAX: Final = 16 << 20
"""The maximum size of the entries cached in memory. The newest ones are pushed to followers."""


@dataclass(frozen=True, slots=True)
class LedgerConfig:
    data_segment_bytes: int = 1 << 30
    index_segment_bytes: int = 5 * 1024 * 1024 * UNIT_BYTES


@dataclass(frozen=True, slots=True)
class Flush:
    """The work that makes all entries up to `end` durable.

    `sync` may run in another thread; it raises OSError.
    """

    end: int
    cuts: int
    """The number of cuts before this flush. After another cut, the result of this flush is void."""
    end_pos: int
    unsynced: tuple[Unsynced, ...]

    def sync(self) -> None:
        sync_all(self.unsynced)


class Ledger:
    """The entries of one member.

    Call `load` first; then append entries, cut them from the end, read by index.
    """

    def __init__(self, disk: Disk, directory: str, config: LedgerConfig) -> None:
        self._data = SegmentedFile(disk, f"{directory}/data", config.data_segment_bytes)
        self._index = SegmentedFile(disk, f"{directory}/index", config.index_segment_bytes)
        self._end_pos = 0
        self._end_index = NO_INDEX
        self._synced_pos = 0
        self._cuts = 0
        self._flushed_capacity = 0
        self._units = bytearray()
        """The index units of the newest entries, not written to the index yet."""
        self._recent: dict[int, Entry] = {}
        self._recent_bytes = 0
        self.durable_pos = 0
        """The position before which entries are known to be durable, when they are loaded."""
        self.known_begin: int | None = None
        """The position where the ledger is known to have begun, when it is loaded; None: it is not known."""
        self.bytes_cut = 0
        """The number of bytes after the last whole entry that the load cut."""
        self._begin = 0, 0
        """The position and index of the first entry, when they were last determined."""

    @property
    def begin_index(self) -> int:
        """The index of the first entry. Earlier entries were deleted with their segments."""
        pos, index = self._begin
        if pos != self._data.begin:
            entry = self._entry_at(self._data.begin)
            if entry is None:
                raise StoreError(f"{self._data.path_of(self._data.begin)}: it does not begin with an entry")
            pos, index = self._begin = self._data.begin, entry.index
        return index

    @property
    def end_index(self) -> int:
        return self._end_index

    @property
    def end_pos(self) -> int:
        """The position after the last entry."""
        return self._end_pos

    @property
    def data(self) -> SegmentedFile:
        """The entries' bytes, for reading only."""
        return self._data

    def load(self) -> Terms:
        """Recover the entries without the torn tail, and make them durable. Returns the terms of all entries.

        Raises:
            StoreError: the files are not those of a ledger.
            OSError: they cannot be read or synced.
        """
        self._data.load()
        self._index.load()
        if self.known_begin is not None and self._data.begin > self.known_begin:
            raise StoreError(
                f"{self._data.path_of(self.known_begin)}: missing, the ledger began at position"
                f" {self.known_begin}: {_REPLACE}"
            )
        start, terms = self._trusted()
        end = start
        for entry in self._walk(start, terms):
            unit = entry_format.encode_unit(entry)
            if self._index.read(entry.index * UNIT_BYTES, UNIT_BYTES) != unit:
                self._index.write(entry.index * UNIT_BYTES, unit)
            end = entry.pos + entry.size
        if end < self.durable_pos:
            raise StoreError(
                f"{self._data.path_of(end)}: no whole entry at position {end}, and the ledger was durable"
                f" up to {self.durable_pos}: {_REPLACE}"
            )
        self._end_pos, self._end_index = end, terms.end
        self.bytes_cut = self._data.cut(end)
        self._index.cut((terms.end + 1) * UNIT_BYTES)
        self._write_again(max(self._data.begin, end - _IN_DOUBT_BYTES), end)
        self._data.sync()
        self._index.sync()
        self._synced_pos = end
        self._flushed_capacity = self._data.capacity_end
        return terms

    def append(self, index: int, term: int, magic: int, body: object) -> Entry:
        """Build and write the next entry.

        `body` is bytes, or a function that returns them, given the position of the body. Its result always
        has the same size.

        Raises:
            StoreError: the entry does not fit into a segment.
            OSError: the disk failed.
        """
        draft = body(0) if callable(body) else body
        assert isinstance(draft, (bytes, bytearray)), f"a body is bytes, not {type(draft).__name__}"
        pos = self._place(entry_format.HEADER_BYTES + len(draft))
        final = body(pos + entry_format.HEADER_BYTES) if callable(body) else draft
        entry = entry_format.make(index, term, magic, pos, bytes(final))
        self._put(entry)
        return entry

    def write(self, entry: Entry) -> None:
        """Write the next entry exactly as another member built it.

        Raises:
            StoreError: its position at the other member differs, so the segments differ in size.
            OSError: the disk failed.
        """
        pos = self._place(entry_format.HEADER_BYTES + len(entry.body))
        if entry.pos != pos or entry.size != entry_format.HEADER_BYTES + len(entry.body):
            raise StoreError(
                f"{self._data.path_of(pos)}: entry {entry.index} goes to {pos}, its leader has it at"
                f" {entry.pos}: do all members have segments of one size?"
            )
        self._put(entry)

    def cut(self, end: int) -> None:
        """Remove the entries after `end`, durably: they never reappear. Raises OSError."""
        self.write_index()
        for index in range(end + 1, self._end_index + 1):
            self._forget_recent(index)
        if end < self.begin_index:
            if end != NO_INDEX:
                raise StoreError(f"{self._data.directory}: cut after {end}, it begins at {self.begin_index}")
            self._end_pos = 0
        else:
            pos, size, *_ = self._unit(end)
            self._end_pos = pos + size
        self._end_index = end
        self._cuts += 1
        self._data.cut(self._end_pos)
        self._index.cut((end + 1) * UNIT_BYTES)
        self._data.sync()
        self._synced_pos = self._end_pos

    def read(self, index: int) -> Entry:
        """Return the entry. Raises StoreError when the disk does not return it as it was written."""
        if (entry := self._recent.get(index)) is not None:
            return entry
        if not self.begin_index <= index <= self._end_index:
            raise StoreError(f"{self._index.directory}: no entry {index}, {self._begin} to {self._end_index}")
        pos, size, *_ = self._unit(index)
        try:
            return entry_format.decode(self._data.read(pos, size), pos)
        except EntryError as error:
            raise StoreError(f"{self._data.path_of(pos)}: {error}") from None

    def index_from(self, pos: int) -> int:
        """Return the index of the first entry at or after `pos`; the next free index if there is none."""
        begin = self.begin_index
        known = range(begin, self._end_index + 1)
        return begin + bisect_left(known, pos, key=lambda index: self._unit(index)[0])

    def end_of(self, index: int) -> int:
        """Return the position after an entry; the position of the first entry if `index` is before it."""
        if index == self._end_index:
            return self._end_pos
        if index < self.begin_index:
            return self._data.begin
        if (entry := self._recent.get(index)) is not None:
            return entry.pos + entry.size
        pos, size, *_ = self._unit(index)
        return pos + size

    def place_after(self, end_pos: int, size: int) -> int | None:
        """Return the position of an entry of that size after `end_pos`; None if it fits no segment."""
        segment = self._data.segment_bytes
        if size + FILLER_BYTES > segment:
            return None
        room = segment - end_pos % segment
        return end_pos + room if size + FILLER_BYTES > room else end_pos

    def position_of(self, index: int) -> int:
        """Return the position of an entry."""
        return self._unit(index)[0]

    def forget_deleted(self) -> Removal:
        """Update the ledger after data segments were deleted from its start.

        Returns the index segments to remove.
        """
        begin = self.begin_index
        for index in [index for index in self._recent if index < begin]:
            self._forget_recent(index)
        return self._index.detach_before(begin * UNIT_BYTES)

    def write_index(self) -> None:
        """Write the missing part of the index.

        It may be late, since only a start reads the newest part. Raises OSError.
        """
        position = (self._end_index + 1) * UNIT_BYTES - len(self._units)
        while self._units:
            room = self._index.segment_bytes - position % self._index.segment_bytes
            self._index.write(position, self._units[:room])
            del self._units[:room]
            position += room

    def begin_flush(self) -> Flush:
        """Return the unsynced files, to be synced. After the sync, `end_flush` returns the durable index."""
        unsynced = [self._data.take_unsynced()]
        if self._data.capacity_end != self._flushed_capacity:
            self._flushed_capacity = self._data.capacity_end
            unsynced.append(self._index.take_unsynced())
        return Flush(self._end_index, self._cuts, self._end_pos, tuple(unsynced))

    def end_flush(self, flush: Flush) -> int:
        """Return the index up to which this flush made the ledger durable; NO_INDEX after a cut."""
        if flush.cuts != self._cuts:
            return NO_INDEX
        self._synced_pos = max(self._synced_pos, flush.end_pos)
        return flush.end

    def close(self) -> None:
        self._data.close()
        self._index.close()

    # -- internals

    def _place(self, size: int) -> int:
        """Return the position of the next entry. Writes a filler first if the segment has no room for it."""
        place = self.place_after(self._end_pos, size)
        if place is None:
            fits = self._data.segment_bytes - FILLER_BYTES
            raise StoreError(f"an entry of {size} bytes, {fits} fit a segment")
        if (room := place - self._end_pos) > 0:
            if room < FILLER_BYTES:
                raise StoreError(
                    f"{self._data.path_of(self._end_pos)}: {room} bytes left, too few for a filler"
                )
            self.write_index()  # the index part of a full segment is synced with the next flush
            self._data.write(self._end_pos, entry_format.filler(room))
            self._end_pos = place
        return self._end_pos

    def _put(self, entry: Entry) -> None:
        assert entry.index == self._end_index + 1, f"entry {entry.index} after {self._end_index}"
        self._data.write(entry.pos, entry_format.encode(entry))
        self._units += entry_format.encode_unit(entry)
        self._end_pos = entry.pos + entry.size
        if self._end_pos - self._synced_pos > _IN_DOUBT_BYTES:
            self._data.sync()
            self._synced_pos = self._end_pos
        self._end_index = entry.index
        if len(self._units) >= _UNITS_BYTES_MAX:
            self.write_index()
        self._recent[entry.index] = entry
        self._recent_bytes += entry.size
        while self._recent_bytes > _RECENT_BYTES_MAX and len(self._recent) > 1:
            self._forget_recent(next(iter(self._recent)))

    def _write_again(self, begin: int, end: int) -> None:
        """Write data again that may exist only in memory.

        After a failed sync, data may be readable but not on disk, and no later sync would write it.
        """
        self._data.write_again(begin, end)

    def _forget_recent(self, index: int) -> None:
        if (entry := self._recent.pop(index, None)) is not None:
            self._recent_bytes -= entry.size

    def _unit(self, index: int) -> tuple[int, int, int, int]:
        if index > self._end_index - len(self._units) // UNIT_BYTES:
            self.write_index()
        try:
            return entry_format.decode_unit(self._index.read(index * UNIT_BYTES, UNIT_BYTES))
        except EntryError as error:
            raise StoreError(f"{self._index.path_of(index * UNIT_BYTES)}: {error}") from None

    def _trusted(self) -> tuple[int, Terms]:
        """Return where the walk of the data starts, and the terms of the entries before, from the index."""
        starts = self._data.starts
        for start in reversed(starts[1 : max(1, len(starts) - _WALKED_SEGMENTS + 1)]):
            if (terms := self._terms_before(start)) is not None:
                return start, terms
        return self._data.begin, Terms(begin=self.begin_index)

    def _terms_before(self, start: int) -> Terms | None:
        """Return the terms of the entries before a segment, from the index.

        Returns None if it is inconsistent.
        """
        first = self._entry_at(start)
        if first is None:
            return None
        terms, pos = Terms(begin=self.begin_index), self._data.begin
        for index in range(self.begin_index, first.index):
            try:
                unit_pos, size, unit_index, term = self._unit(index)
            except StoreError:
                return None
            goes_on = unit_pos == pos or unit_pos == _next_segment(pos, self._data.segment_bytes)
            if unit_index != index or term < terms.end_term or not goes_on:
                return None
            terms.append(term)
            pos = unit_pos + size
        return terms

    def _walk(self, pos: int, terms: Terms) -> Iterator[Entry]:
        """Yield complete entries from `pos` on, each the successor of the one before.

        Adds their terms to `terms`.
        """
        while True:
            room = self._data.segment_bytes - pos % self._data.segment_bytes
            if entry_format.peek(self._data.read(pos, FILLER_BYTES)) == -1:
                pos += room
            entry = self._entry_at(pos)
            if entry is None or entry.index != terms.end + 1 or entry.term < max(1, terms.end_term):
                return
            terms.append(entry.term)
            yield entry
            pos += entry.size

    def _entry_at(self, pos: int) -> Entry | None:
        size = entry_format.peek(self._data.read(pos, FILLER_BYTES))
        if size <= 0:
            return None
        with suppress(EntryError):
            return entry_format.decode(self._data.read(pos, size), pos)
        return None


def _next_segment(pos: int, segment_bytes: int) -> int:
    return pos - pos % segment_bytes + segment_bytes
