"""The bytes of a ledger entry: a header of 48 bytes, then the body.

See docs/reference/protocol/dledger.md, "DLedger files". The body is a message, so a reader of commit logs
finds its record 48 bytes after the entry's position. Released DLedger leaves both checksums 0 and does not
check them. Ours fills in the chain CRC, which shows whether an entry is torn. 0 means that there is no
checksum.
"""

import struct
import zlib
from typing import Final

from mqproof.impl.dledger.limits import INDEX_MAX, POSITION_MAX, TERM_MAX
from mqproof.impl.dledger.rpc_bodies import NO_OP, NORMAL, Entry

_HEADER: Final = struct.Struct(">iiqqqiiii")
_FRONT_BYTES: Final = 36
HEADER_BYTES: Final = _HEADER.size
FILLER_BYTES: Final = 8
_FILLER_MAGIC: Final = -1

_UNIT: Final = struct.Struct(">iqiqq")
UNIT_BYTES: Final = _UNIT.size
"""The size of an index unit, which has the magic, position, size, index and term of one entry."""


class EntryError(ValueError):
    """The bytes are not an entry of this position. The message says what is wrong."""


def make(index: int, term: int, magic: int, pos: int, body: bytes) -> Entry:
    """Return the entry with its checksum."""
    size = HEADER_BYTES + len(body)
    front = _HEADER.pack(magic, size, index, term, pos, 0, 0, 0, len(body))[:_FRONT_BYTES]
    return Entry(magic, size, index, term, pos, chain_crc=_crc(front, body), body=body)


def encode(entry: Entry) -> bytes:
    """Return the entry's bytes."""
    header = _HEADER.pack(
        entry.magic,
        entry.size,
        entry.index,
        entry.term,
        entry.pos,
        entry.channel,
        entry.chain_crc,
        entry.body_crc,
        len(entry.body),
    )
    return header + entry.body


def filler(size: int) -> bytes:
    """Return the bytes that fill the end of a segment that has no room for the next entry."""
    assert size >= FILLER_BYTES, f"no room for a filler in {size} bytes"
    return struct.pack(">ii", _FILLER_MAGIC, size).ljust(size, b"\0")


def peek(front: bytes) -> int:
    """Return the size of the entry that starts with these bytes; 0 if there is none, -1 for a filler."""
    if len(front) < FILLER_BYTES:
        return 0
    magic, size = struct.unpack_from(">ii", front)
    if magic == _FILLER_MAGIC:
        return -1
    return size if magic in (NORMAL, NO_OP) and size >= HEADER_BYTES else 0


def place_of(header: bytes) -> tuple[int, int]:
    """Return the index and term in a complete header."""
    _, _, index, term, *_ = _HEADER.unpack_from(header)
    return index, term


def decode(data: bytes, pos: int) -> Entry:
    """Decode the entry in exactly these bytes.

    Raises:
        EntryError: they are not a complete, undamaged entry of that position.
    """
    if len(data) < HEADER_BYTES:
        raise EntryError(f"an entry of {len(data)} bytes, at least {HEADER_BYTES} expected")
    magic, size, index, term, place, channel, chain, body_crc, body_size = _HEADER.unpack_from(data)
    if magic not in (NORMAL, NO_OP):
        raise EntryError(f"magic {magic}, {NORMAL} or {NO_OP} expected")
    if size != len(data) or body_size != size - HEADER_BYTES:
        raise EntryError(f"entry says {size} bytes with a body of {body_size}, {len(data)} expected")
    if place != pos:
        raise EntryError(f"entry says position {place}, found at {pos}")
    _check_place(index, term)
    body = data[HEADER_BYTES:]
    if not is_whole(chain, data[:_FRONT_BYTES], body):
        raise EntryError(f"the checksum of entry {index} does not match its content")
    return Entry(magic, size, index, term, pos, channel, chain, body_crc, body)


def is_whole(chain: int, front: bytes | memoryview, body: bytes | memoryview) -> bool:
    """Return whether the checksum matches, or there is none, as in entries of released members."""
    return chain in (0, _crc(front, body))


def encode_unit(entry: Entry) -> bytes:
    """Return the index unit of the entry."""
    return _UNIT.pack(entry.magic, entry.pos, entry.size, entry.index, entry.term)


def decode_unit(data: bytes) -> tuple[int, int, int, int]:
    """Decode an index unit into position, size, index and term.

    Raises EntryError when the bytes are not a unit.
    """
    if len(data) < UNIT_BYTES:
        raise EntryError(f"a unit of {len(data)} bytes, {UNIT_BYTES} expected")
    magic, pos, size, index, term = _UNIT.unpack_from(data)
    if magic not in (NORMAL, NO_OP):
        raise EntryError(f"magic {magic} in the index, {NORMAL} or {NO_OP} expected")
    if not (0 <= pos <= POSITION_MAX and size >= HEADER_BYTES):
        raise EntryError(f"the index has an entry of {size} bytes at {pos}")
    _check_place(index, term)
    return pos, size, index, term


def _check_place(index: int, term: int) -> None:
    if not (0 <= index <= INDEX_MAX and 1 <= term <= TERM_MAX):
        raise EntryError(f"index {index} and term {term}, at most {INDEX_MAX} and {TERM_MAX} expected")


def _crc(front: bytes | memoryview, body: bytes | memoryview) -> int:
    """Return the checksum without its highest bit, because it is read as a signed number.

    It is never 0, which means "no checksum".
    """
    return zlib.crc32(body, zlib.crc32(front)) & 0x7FFF_FFFF or 1
