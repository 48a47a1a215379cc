"""The byte format of a replication connection (docs/reference/protocol/replication.md, "Frames")."""

import struct
import zlib
from dataclasses import dataclass
from typing import Final, Protocol

from mqproof.impl.store.files.record import SIZE_MIN

_POSITION: Final = struct.Struct(">q")
_PROVED: Final = struct.Struct(">qI")
_HEADER: Final = struct.Struct(">qi")

HEADER_BYTES: Final = _HEADER.size
POSITION_MAX: Final = 1 << 62
"""The highest position of a log."""
TAKEN_BODY_BYTES_MAX: Final = 4 << 20
"""The most bytes accepted in one transfer: a master's haTransferBatchSize may be set to more."""


class StreamError(Exception):
    """The peer sent something invalid, so the connection must be closed. The message is one line."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes of the master's log; an empty transfer is a heartbeat."""

    position: int
    """The commit offset of the first byte; for a heartbeat, of the next byte to be sent."""
    body: bytes


TAIL_BYTES: Final = 1024
"""The bytes of the log before a position that a slave proves, fewer at the start of a segment."""
TAIL_RECORDS: Final = TAIL_BYTES // SIZE_MIN + 1
"""The most records in these bytes."""


class ReadableLog(Protocol):
    @property
    def log_segment_bytes(self) -> int: ...
    def log_read(self, position: int, size: int) -> bytes: ...


def tail_checksum(log: ReadableLog, position: int) -> int:
    """Return the CRC-32 of the log's bytes before a position, within one segment. Without bytes it is 0."""
    segment = log.log_segment_bytes
    start = max(position - TAIL_BYTES, (position - 1) // segment * segment, 0)
    return zlib.crc32(log.log_read(start, position - start)) if position > 0 else 0


def write_proved_position(position: int, checksum: int) -> bytes:
    """Encode a position together with the checksum of the bytes before it in the slave's log."""
    return _PROVED.pack(position, checksum)


def read_proved_position(buffer: bytearray) -> tuple[int, int] | None:
    """Remove one position and its checksum from the front of the buffer; None when more bytes are needed.

    Raises:
        StreamError: the position is out of range.
    """
    if len(buffer) < _PROVED.size:
        return None
    position, checksum = _PROVED.unpack_from(buffer)
    _check(position)
    del buffer[: _PROVED.size]
    return int(position), int(checksum)


def write_position(position: int) -> bytes:
    """Encode a position, the only message of a slave: where to begin, or how far its log reaches."""
    return _POSITION.pack(position)


def read_position(buffer: bytearray) -> int | None:
    """Remove one position from the front of the buffer and return it; None when more bytes are needed.

    Raises:
        StreamError: the position is out of range.
    """
    if len(buffer) < _POSITION.size:
        return None
    (position,) = _POSITION.unpack_from(buffer)
    _check(position)
    del buffer[: _POSITION.size]
    return int(position)


def _check(position: int) -> None:
    if not 0 <= position <= POSITION_MAX:
        raise StreamError(f"position {position}, 0 to {POSITION_MAX} expected")


def write_transfer(transfer: Transfer) -> bytes:
    return _HEADER.pack(transfer.position, len(transfer.body)) + transfer.body


def read_transfer(buffer: bytearray) -> Transfer | None:
    """Remove one transfer from the front of the buffer and return it; None when more bytes are needed.

    Raises:
        StreamError: the position or the size is out of range. This is checked before the body arrives.
    """
    if len(buffer) < _HEADER.size:
        return None
    position, size = _HEADER.unpack_from(buffer)
    _check(position)
    if not 0 <= size <= TAKEN_BODY_BYTES_MAX:
        raise StreamError(f"transfer of {size} bytes, 0 to {TAKEN_BODY_BYTES_MAX} expected")
    end = _HEADER.size + size
    if len(buffer) < end:
        return None
    body = bytes(memoryview(buffer)[_HEADER.size : end])
    del buffer[:end]
    return Transfer(position, body)
