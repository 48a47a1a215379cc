"""One file of the key index: a hash table whose chains are linked entries.

See docs/reference/protocol/storing.md, "Key index". An entry says that a record has a key with this hash; two
keys may have the same hash. Entries are only added. The number of entries therefore determines the whole
content of a file: the slots follow from the entries.
"""

import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple, Self

from mqproof.impl.runtime.disk import File

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">iqii")
_pack_entry: Final = _ENTRY.pack
_HASH: Final = struct.Struct(">i16x")
"""The hash, which is the first field of an entry."""
_INT_MAX: Final = (1 << 31) - 1
_ENTRIES_READ: Final = 50_000
_UNWRITTEN_BYTES_MAX: Final = 64 * 1024
_BLOCK_SLOTS: Final = 16 * 1024
"""How many slots are written together; keys are spread over all slots by their hash."""

HEADER_BYTES: Final = _HEADER.size


@dataclass(slots=True)
class Header:
    """The header of an index file. That of an open file changes with every entry, so keep a copy of it."""

    begin_timestamp_ms: int = 0
    """Store time of the first record; while the file is empty, of the last one of the previous file."""
    end_timestamp_ms: int = 0
    begin_offset: int = 0
    """Commit offset of the first record; while the file is empty, of the last one of the previous file."""
    end_offset: int = 0
    slots_used: int = 0
    entry_next: int = 1
    """The number of the next entry; entry numbers begin at 1."""

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


NewEntry = tuple[int, int, int]
"""The hash of a key, and the commit offset and the store time of its record."""


class Entry(NamedTuple):
    key_hash: int
    commit_offset: int
    seconds: int
    """Seconds from the file's begin to the record's store time."""
    previous: int
    """The number of the previous entry in its chain; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class IndexShape:
    """The sizes that all files of one index share."""

    slots: int = 5_000_000
    entries: int = 20_000_000
    """The number that the next entry of a full file would have: one more than the entries that fit."""

    @property
    def file_bytes(self) -> int:
        return self.entry_at(self.entries)

    def slot_at(self, slot: int) -> int:
        return HEADER_BYTES + slot * _SLOT.size

    def entry_at(self, number: int) -> int:
        return HEADER_BYTES + self.slots * _SLOT.size + number * _ENTRY.size


class IndexFile:
    """One file of the index.

    The header, the slots and the newest entries are in memory; `write_out` writes them to the file. A crash
    may lose them, because they can be computed from the log.
    """

    def __init__(self, name: int, file: File, shape: IndexShape, header: Header) -> None:
        self.name = name
        """The 17 digits of its name, as a number."""
        self.file = file
        self.header = header
        self._shape = shape
        self._slots: array[int] | None = None
        """All slots, in a file to which entries are added; otherwise None."""
        self._changed_slots: set[int] = set()
        """The numbers of the blocks of slots that have changed since they were last written."""
        self._unwritten = bytearray()
        """The newest entries, which are not in the file yet."""
        self.on_damage: Callable[[str, int], None] = lambda _path, _number: None
        """Called with the file and the number of an entry that does not belong to its chain."""

    def put(self, entries: Sequence[NewEntry]) -> None:
        """Add entries, at least one, which must fit into the file. Raises OSError."""
        header, changed = self.header, self._changed_slots
        slots = self._slots if self._slots is not None else self._load_slots()
        count, number, used = len(slots), header.entry_next, header.slots_used
        begin_ms, packed, seconds, seconds_of_ms = header.begin_timestamp_ms, [], 0, -1
        for key_hash, commit_offset, time_ms in entries:
            slot = key_hash % count
            previous = slots[slot]
            if not 0 <= previous < number:
                previous = 0
            if time_ms != seconds_of_ms:  # most entries have the time of the one before
                seconds = min((time_ms - begin_ms) // 1000, _INT_MAX) if time_ms > begin_ms > 0 else 0
                seconds_of_ms = time_ms
            packed.append(_pack_entry(key_hash, commit_offset, seconds, previous))
            slots[slot] = number
            changed.add(slot // _BLOCK_SLOTS)
            if number == 1:
                header.begin_timestamp_ms = begin_ms = time_ms
                seconds_of_ms = -1  # from now on, seconds count from this entry
                header.begin_offset = commit_offset
            used += previous == 0
            number += 1
        self._unwritten += b"".join(packed)
        header.entry_next, header.slots_used = number, used
        header.end_timestamp_ms, header.end_offset = time_ms, commit_offset
        if len(self._unwritten) >= _UNWRITTEN_BYTES_MAX:
            self._write_entries()

    def write_out(self) -> None:
        """Write all changes to the file. Raises OSError, after which it may be called again."""
        self._write_entries()
        for block in sorted(self._changed_slots):
            assert self._slots is not None
            start = block * _BLOCK_SLOTS
            data = _big_endian(self._slots[start : start + _BLOCK_SLOTS])
            self.file.write(self._shape.slot_at(start), data.tobytes())
        self._changed_slots.clear()
        self.write_header()

    def finish(self) -> None:
        """Write all changes to the file, to which nothing more is added. Raises OSError."""
        self.write_out()
        self._slots = None

    def chain(self, key_hash: int) -> Iterator[Entry]:
        """Yield the entries of the hash's slot, newest first, including those of other hashes."""
        slot = key_hash % self._shape.slots
        number = self._newest(slot)
        while number:
            entry = self._entry(number)
            # A chain leads only to older entries of its slot, so that a damaged one cannot form a loop.
            if entry.key_hash % self._shape.slots != slot or not 0 <= entry.previous < number:
                self.on_damage(self.file.path, number)
                return
            yield entry
            number = entry.previous

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, oldest first."""
        for data in self._chunks():
            yield from map(Entry._make, _ENTRY.iter_unpack(data))

    def slots(self) -> "array[int]":
        """Return the slots as they are in the file."""
        return _big_endian(array("i", self.file.read(HEADER_BYTES, self._shape.slots * _SLOT.size)))

    def count(self, key_hash: int, commit_offset: int) -> int:
        """Return the number of the hash's entries for that record: more than one if its keys collide."""
        newest = takewhile(lambda entry: entry.commit_offset >= commit_offset, self.chain(key_hash))
        return sum((entry.key_hash, entry.commit_offset) == (key_hash, commit_offset) for entry in newest)

    def repair(self) -> None:
        """Compute everything else from the first `entry_next` entries.

        Later entries that a crash left are zeroed, and each slot points to its newest entry. Raises OSError.
        """
        newest = array("i", bytes(4 * self._shape.slots))
        slots = self._shape.slots
        for number, (hashed,) in enumerate(self._hashes(), 1):
            newest[hashed % slots] = number
        used = slots - newest.count(0)
        self.file.zero_tail(self._shape.entry_at(self.header.entry_next))
        self.file.write(self._shape.slot_at(0), _big_endian(newest).tobytes())
        self.header.slots_used = used
        self.write_header()

    def write_header(self) -> None:
        self.file.write(0, self.header.encode())

    def _hashes(self) -> Iterator[tuple[int]]:
        """Yield the hashes of all entries, oldest first.

        After a kill there may be millions of them to read.
        """
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

    def _load_slots(self) -> "array[int]":
        size = self._shape.slots * _SLOT.size
        is_new = self.header.entry_next == 1
        data = bytes(size) if is_new else self.file.read(HEADER_BYTES, size).ljust(size, b"\0")
        self._slots = _big_endian(array("i", data))
        return self._slots

    @property
    def _first_unwritten(self) -> int:
        """The number of the first entry that is not in the file yet."""
        return self.header.entry_next - len(self._unwritten) // _ENTRY.size

    def _newest(self, slot: int) -> int:
        if self._slots is not None:
            number = self._slots[slot]
        else:
            data = self.file.read(self._shape.slot_at(slot), _SLOT.size)
            (number,) = _SLOT.unpack(data.ljust(_SLOT.size, b"\0"))  # the file may have been cut
        return number if 0 < number < self.header.entry_next else 0

    def _entry(self, number: int) -> Entry:
        behind = number - self._first_unwritten
        if behind >= 0:
            return Entry._make(_ENTRY.unpack_from(self._unwritten, behind * _ENTRY.size))
        data = self.file.read(self._shape.entry_at(number), _ENTRY.size)
        return Entry._make(_ENTRY.unpack(data.ljust(_ENTRY.size, b"\0")))


def _big_endian(slots: "array[int]") -> "array[int]":
    """Convert slots in place between this machine's order of bytes and that of the file; return them."""
    if sys.byteorder == "little":
        slots.byteswap()
    return slots


def read_header(file: File, shape: IndexShape) -> Header | None:
    """Return the header in the file; None when it is invalid."""
    header = Header.decode(file.read(0, HEADER_BYTES).ljust(HEADER_BYTES, b"\0"))
    return header if 0 < header.entry_next <= shape.entries else None
