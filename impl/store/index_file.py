"""One file of the key index: a hash table whose chains are linked entries (docs/protocol.md, "Index").

An entry says that some record has a key with this hash; two keys may have the same. Entries are only ever
added, so a file is known to be whole by the number of its entries: the slots follow from them.
"""

import struct
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from mqproof.impl.runtime.disk import File

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">iqii")
_HASH: Final = struct.Struct(">i16x")
"""The first part of an entry."""
_INT_MAX: Final = (1 << 31) - 1
_ENTRIES_READ: Final = 50_000
_UNWRITTEN_BYTES_MAX: Final = 64 * 1024
_PIECE_SLOTS: Final = 16 * 1024
"""Slots that are written together: keys go to slots by their hash, all over the file."""

HEADER_BYTES: Final = _HEADER.size


@dataclass(slots=True)
class Header:
    """Of an open file it changes with every entry: whoever keeps one keeps a copy."""

    begin_timestamp_ms: int = 0
    """Store time of the first record; until there is one, of the last record of the file before."""
    end_timestamp_ms: int = 0
    begin_offset: int = 0
    """Commit offset of the first record, as with the time."""
    end_offset: int = 0
    slots_used: int = 0
    entry_next: int = 1
    """Number of the next entry: there is no entry 0."""

    def encode(self) -> bytes:
        return _HEADER.pack(
            self.begin_timestamp_ms,
            self.end_timestamp_ms,
            self.begin_offset,
            self.end_offset,
            self.slots_used,
            self.entry_next,
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(*_HEADER.unpack(data))


class Entry(NamedTuple):
    key_hash: int
    commit_offset: int
    seconds: int
    """From the file's begin to the record's store time."""
    previous: int
    """Number of the entry before it in its chain; 0 for none."""


@dataclass(frozen=True, slots=True)
class IndexShape:
    """What all files of one index have in common."""

    slots: int = 5_000_000
    entries: int = 20_000_000
    """One more than there is room for."""

    @property
    def file_bytes(self) -> int:
        return self.entry_at(self.entries)

    def slot_at(self, slot: int) -> int:
        return HEADER_BYTES + slot * _SLOT.size

    def entry_at(self, number: int) -> int:
        return HEADER_BYTES + self.slots * _SLOT.size + number * _ENTRY.size


class IndexFile:
    """`header`, the slots, and the newest entries are in memory; `write_out` puts them into the file. A crash
    may take them, for they follow from the log."""

    def __init__(self, name: int, file: File, shape: IndexShape, header: Header) -> None:
        self.name = name
        """Its 17 digits."""
        self.file = file
        self.header = header
        self._shape = shape
        self._slots: bytearray | None = None
        """All of them as in the file, of a file that is added to."""
        self._changed_slots: set[int] = set()
        """Pieces of them, by number, that the file does not have yet."""
        self._unwritten = bytearray()
        """The entries before the next one that the file does not have yet."""

    @property
    def is_full(self) -> bool:
        return self.header.entry_next >= self._shape.entries

    def put(self, key_hash: int, commit_offset: int, store_timestamp_ms: int) -> None:
        """Add an entry; the file must not be full. Raises OSError."""
        header, number = self.header, self.header.entry_next
        slots = self._slots if self._slots is not None else self._load_slots()
        slot = key_hash % self._shape.slots
        previous = self._newest(slot)
        seconds = 0
        if header.begin_timestamp_ms > 0:
            seconds = min(max(store_timestamp_ms - header.begin_timestamp_ms, 0) // 1000, _INT_MAX)
        self._unwritten += _ENTRY.pack(key_hash, commit_offset, seconds, previous)
        _SLOT.pack_into(slots, slot * _SLOT.size, number)
        self._changed_slots.add(slot // _PIECE_SLOTS)
        if number == 1:
            header.begin_timestamp_ms, header.begin_offset = store_timestamp_ms, commit_offset
        header.end_timestamp_ms, header.end_offset = store_timestamp_ms, commit_offset
        header.slots_used += previous == 0
        header.entry_next = number + 1
        if len(self._unwritten) >= _UNWRITTEN_BYTES_MAX:
            self._write_entries()

    def write_out(self) -> None:
        """Put everything into the file. Raises OSError: it may be called again."""
        self._write_entries()
        for piece in sorted(self._changed_slots):
            assert self._slots is not None
            start = piece * _PIECE_SLOTS
            data = self._slots[start * _SLOT.size : (start + _PIECE_SLOTS) * _SLOT.size]
            self.file.write(self._shape.slot_at(start), data)
        self._changed_slots.clear()
        self.write_header()

    def finish(self) -> None:
        """Put everything into the file, which is added to no more. Raises OSError."""
        self.write_out()
        self._slots = None

    def chain(self, key_hash: int) -> Iterator[Entry]:
        """The entries of the hash's slot, newest first; those of other hashes are among them."""
        number = self._newest(key_hash % self._shape.slots)
        while number:
            entry = self._entry(number)
            yield entry
            # A chain leads to older entries only: a damaged one must not lead round in a circle.
            number = entry.previous if 0 < entry.previous < number else 0

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first."""
        for data in self._chunks():
            yield from map(Entry._make, _ENTRY.iter_unpack(data))

    def slots(self) -> "array[int]":
        """What the slots say, as it stands in the file."""
        found = array("i", self.file.read(HEADER_BYTES, self._shape.slots * _SLOT.size))
        if sys.byteorder == "little":
            found.byteswap()
        return found

    def has(self, key_hash: int, commit_offset: int) -> bool:
        """Whether the hash's chain, as far as it may, has an entry for that record."""
        for entry in self.chain(key_hash):
            if entry.commit_offset < commit_offset:
                return False
            if (entry.key_hash, entry.commit_offset) == (key_hash, commit_offset):
                return True
        return False

    def repair(self) -> None:
        """Make everything but the first `entry_next` entries follow from them: what a crash left of later
        ones is zeroed, and each slot leads to its newest entry. Raises OSError."""
        newest = array("i", bytes(4 * self._shape.slots))
        slots = self._shape.slots
        for number, (hashed,) in enumerate(self._hashes(), 1):
            newest[hashed % slots] = number
        used = slots - newest.count(0)
        if sys.byteorder == "little":
            newest.byteswap()
        self.file.zero_tail(self._shape.entry_at(self.header.entry_next))
        self.file.write(self._shape.slot_at(0), newest.tobytes())
        self.header.slots_used = used
        self.write_header()

    def write_header(self) -> None:
        self.file.write(0, self.header.encode())

    def _hashes(self) -> Iterator[tuple[int]]:
        """The hashes of all entries, oldest first: of millions, at each start after a kill."""
        for data in self._chunks():
            yield from _HASH.iter_unpack(data)

    def _chunks(self) -> Iterator[bytes]:
        number, end = 1, self._first_unwritten
        while number < end:
            count = min(_ENTRIES_READ, end - number)
            yield self.file.read(self._shape.entry_at(number), count * _ENTRY.size)
            number += count
        yield bytes(self._unwritten)

    def _write_entries(self) -> None:
        if self._unwritten:
            self.file.write(self._shape.entry_at(self._first_unwritten), self._unwritten)
            self._unwritten = bytearray()

    def _load_slots(self) -> bytearray:
        size = self._shape.slots * _SLOT.size
        is_new = self.header.entry_next == 1
        self._slots = bytearray(size) if is_new else bytearray(self.file.read(HEADER_BYTES, size))
        return self._slots

    @property
    def _first_unwritten(self) -> int:
        """Number of the first entry that the file does not have."""
        return self.header.entry_next - len(self._unwritten) // _ENTRY.size

    def _newest(self, slot: int) -> int:
        at = slot * _SLOT.size
        data = self._slots if self._slots is not None else self.file.read(HEADER_BYTES + at, _SLOT.size)
        (number,) = _SLOT.unpack_from(data, at if data is self._slots else 0)
        return number if 0 < number < self.header.entry_next else 0

    def _entry(self, number: int) -> Entry:
        behind = number - self._first_unwritten
        if behind >= 0:
            return Entry._make(_ENTRY.unpack_from(self._unwritten, behind * _ENTRY.size))
        return Entry._make(_ENTRY.unpack(self.file.read(self._shape.entry_at(number), _ENTRY.size)))


def read_header(file: File, shape: IndexShape) -> Header | None:
    """The header in the file; None when it cannot be one."""
    header = Header.decode(file.read(0, HEADER_BYTES).ljust(HEADER_BYTES, b"\0"))
    return header if 0 < header.entry_next <= shape.entries else None
