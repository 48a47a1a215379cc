"""What goes over a replication connection: bytes to values and back, nothing else (docs/protocol.md,
"Replication")."""

import struct
from dataclasses import dataclass
from typing import Final

_POSITION: Final = struct.Struct(">q")
_HEADER: Final = struct.Struct(">qi")

HEADER_BYTES: Final = _HEADER.size
BODY_BYTES_MAX: Final = 32 << 10
"""What is sent in one transfer: as released masters do."""
TAKEN_BODY_BYTES_MAX: Final = 4 << 20
"""What is taken in one transfer: a master's haTransferBatchSize may be set to more."""


class StreamError(Exception):
    """The peer said what cannot be: the connection must be closed. One line."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes of the master's log; none at all is a heartbeat."""

    position: int
    """Commit offset of the first byte; of a heartbeat, of the next that would be sent."""
    body: bytes


def write_position(position: int) -> bytes:
    """The one thing that a slave says: where to begin, or how far it is."""
    return _POSITION.pack(position)


def read_position(buffer: bytearray) -> int | None:
    """Take one position off the front of the buffer; None when more bytes are needed.

    Raises:
        StreamError: a position below 0.
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
    """Take one transfer off the front of the buffer; None when more bytes are needed.

    Raises:
        StreamError: a position below 0, or a size that no transfer has: known before its bytes are awaited.
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
