"""The byte format of a replication connection (docs/reference/protocol/replication.md, "Frames")."""

import struct
from dataclasses import dataclass
from typing import Final

_POSITION: Final = struct.Struct(">q")
_HEADER: Final = struct.Struct(">qi")

HEADER_BYTES: Final = _HEADER.size
BODY_BYTES_MAX: Final = 32 << 10
"""The most bytes of the log sent in one transfer, as in released masters."""
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


def write_position(position: int) -> bytes:
    """Encode a position, the only message of a slave: where to begin, or how far its log reaches."""
    return _POSITION.pack(position)


def read_position(buffer: bytearray) -> int | None:
    """Remove one position from the front of the buffer and return it; None when more bytes are needed.

    Raises:
        StreamError: the position is below 0.
    """
    if len(buffer) < _POSITION.size:
        return None
    (position,) = _POSITION.unpack_from(buffer)
    if position < 0:
        raise StreamError(f"position {position}, 0 or more expected")
    del buffer[: _POSITION.size]
    return int(position)


def write_transfer(transfer: Transfer) -> bytes:
    return _HEADER.pack(transfer.position, len(transfer.body)) + transfer.body


def read_transfer(buffer: bytearray) -> Transfer | None:
    """Remove one transfer from the front of the buffer and return it; None when more bytes are needed.

    Raises:
        StreamError: the position is below 0 or the size is invalid. This is checked before the body arrives.
    """
    if len(buffer) < _HEADER.size:
        return None
    position, size = _HEADER.unpack_from(buffer)
    if position < 0 or not 0 <= size <= TAKEN_BODY_BYTES_MAX:
        raise StreamError(
            f"transfer of {size} bytes at {position}, 0 to {TAKEN_BODY_BYTES_MAX} bytes at 0 or more expected"
        )
    end = _HEADER.size + size
    if len(buffer) < end:
        return None
    body = bytes(memoryview(buffer)[_HEADER.size : end])
    del buffer[:end]
    return Transfer(position, body)
