"""The files of a ledger, built from its entries by an encoder of its own.

See docs/reference/protocol/dledger.md, "DLedger files".
"""

import struct
import zlib
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

_HEADER: Final = struct.Struct(">iiqqqiiii")
_UNIT: Final = struct.Struct(">iqiqq")
_SUMMED_BYTES: Final = 36
"""The checksum covers so much of a header, and the body."""
HEADER_BYTES: Final = 48
UNIT_BYTES: Final = 32
FILLER_BYTES: Final = 8
HIGHEST_TERM: Final = 1 << 62
NORMAL: Final = 1
NO_OP: Final = 2


@dataclass(frozen=True, slots=True)
class Item:
    """An entry as it is in the data file."""

    index: int
    term: int
    pos: int
    body: bytes
    magic: int = NORMAL
    channel: int = 0
    body_crc: int = 0
    has_checksum: bool = True

    @property
    def size(self) -> int:
        return HEADER_BYTES + len(self.body)

    @property
    def end(self) -> int:
        return self.pos + self.size

    @property
    def checksum(self) -> int:
        if not self.has_checksum:
            return 0
        front = _HEADER.pack(self.magic, self.size, self.index, self.term, self.pos, self.channel, 0, 0, 0)
        return zlib.crc32(self.body, zlib.crc32(front[:_SUMMED_BYTES])) & 0x7FFF_FFFF or 1

    def written(self) -> bytes:
        """Return the bytes of the entry."""
        numbers = self.magic, self.size, self.index, self.term, self.pos, self.channel, self.checksum
        return _HEADER.pack(*numbers, self.body_crc, len(self.body)) + self.body

    def unit(self) -> bytes:
        """Return the unit of the entry in the index."""
        return _UNIT.pack(self.magic, self.pos, self.size, self.index, self.term)


class LedgerFiles:
    """The entries of a ledger, and what its files have."""

    def __init__(self, segment_bytes: int, index_segment_bytes: int) -> None:
        self.segment_bytes = segment_bytes
        self.index_segment_bytes = index_segment_bytes
        self.items: list[Item] = []
        """All entries, also those that were deleted with their segments."""
        self.begin = 0
        """The index of the first entry that was not deleted."""
        self.indexed_from = 0
        """The first entry with a unit in the index."""
        self.fillers: dict[int, bytes] = {}
        """Fillers of which a loss of power left a part, by position."""

    @property
    def kept(self) -> list[Item]:
        return self.items[self.begin :]

    @property
    def end(self) -> int:
        """The index of the last entry, -1 without entries."""
        return len(self.items) - 1

    @property
    def end_pos(self) -> int:
        return self.items[-1].end if self.items else 0

    @property
    def end_term(self) -> int:
        return self.items[-1].term if self.items else 0

    @property
    def begin_pos(self) -> int:
        return self.items[self.begin].pos if self.items else 0

    @property
    def starts(self) -> list[int]:
        """The positions of the segments that have entries."""
        return sorted({each.pos - each.pos % self.segment_bytes for each in self.kept})

    def cut(self, end: int) -> None:
        """Remove the entries after `end`."""
        del self.items[end + 1 :]
        self.fillers = {pos: each for pos, each in self.fillers.items() if pos < self.end_pos}

    def copy(self) -> "LedgerFiles":
        """Return other files with the same content."""
        files = LedgerFiles(self.segment_bytes, self.index_segment_bytes)
        files.items, files.begin = list(self.items), self.begin
        files.indexed_from, files.fillers = self.indexed_from, self.fillers
        return files

    def room_after(self, pos: int) -> int:
        """Return how many bytes the segment has from a position on."""
        return self.segment_bytes - pos % self.segment_bytes

    def place(self, size: int, after: int) -> int | None:
        """Return where an entry of a size goes; None if no segment has room for it and for a filler."""
        if size + FILLER_BYTES > self.segment_bytes:
            return None
        room = self.room_after(after)
        return after if size + FILLER_BYTES <= room else after + room

    def first_at(self, pos: int) -> int:
        """Return the index of the first entry at a position or after it."""
        return self.begin + bisect_left([each.pos for each in self.kept], pos)

    def next(self, term: int, body: bytes, **more: int) -> Item | None:
        """Return the next entry; None if no segment has room for it."""
        place = self.place(HEADER_BYTES + len(body), self.end_pos)
        return None if place is None else Item(len(self.items), term, place, body, **more)  # type: ignore[arg-type]

    def data(self) -> dict[int, bytes]:
        """Return the content of the data segments by their position, without zeros at the end."""
        content = {start: bytearray(self.segment_bytes) for start in self.starts}
        before = 0
        for item in self.kept:
            if item.pos != before and item.index > self.begin:
                filler = self.fillers.get(before) or struct.pack(">ii", -1, item.pos - before)
                self._put(content, before, filler, self.segment_bytes)
            self._put(content, item.pos, item.written(), self.segment_bytes)
            before = item.end
        return {start: bytes(each).rstrip(b"\0") for start, each in content.items()}

    def index(self) -> dict[int, bytes]:
        """Return the content of the index segments by their position, without zeros at the end."""
        content: dict[int, bytearray] = {}
        for item in self.items[self.indexed_from :]:
            position = item.index * UNIT_BYTES
            start = position - position % self.index_segment_bytes
            if start + self.index_segment_bytes > self.begin * UNIT_BYTES:
                content.setdefault(start, bytearray(self.index_segment_bytes))
                self._put(content, position, item.unit(), self.index_segment_bytes)
        return {start: bytes(each).rstrip(b"\0") for start, each in content.items()}

    @staticmethod
    def _put(content: dict[int, bytearray], position: int, data: bytes, segment_bytes: int) -> None:
        offset = position % segment_bytes
        content[position - offset][offset : offset + len(data)] = data
