"""A stranger at the port of slaves: it acknowledges everything that it receives, and keeps nothing.

See docs/reference/protocol/replication.md, "Replication stream" and "Authentication of peers".
"""

import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from mqproof.conformance.hostile.seen import SlaveView
from mqproof.conformance.wire.server_connection import Address, UnreachableError

MAGIC: Final = b"MQPEER\x00\x01"
_HELLO_FRONT_BYTES: Final = len(MAGIC) + 32 + 1
_PROOF_BYTES: Final = 32
_HEAD: Final = struct.Struct(">qi")
"""Position and length, before the body of a transfer."""
_BODY_BYTES_MAX: Final = 1 << 24
_TAIL_BYTES: Final = 1024
_CHUNK: Final = 1 << 16


@contextmanager
def stranger(port: Address, data: bytes, has_checksums: bool, seconds_max: float) -> Iterator[SlaveView]:
    """Connect, send the bytes, and follow in a thread until the block ends. Raises UnreachableError."""
    try:
        connection = socket.create_connection((port.host, port.port), seconds_max)
    except OSError as error:
        raise UnreachableError(f"{port}: no connection: {error}") from None
    connection.settimeout(None)
    view = SlaveView()
    thread = threading.Thread(target=_Follower(connection, view, has_checksums).follow)
    thread.start()
    try:
        with suppress(OSError):  # the broker has closed the connection, as it should
            connection.sendall(data)
        yield view
    finally:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        thread.join()
        connection.close()


class _Follower:
    def __init__(self, connection: socket.socket, view: SlaveView, has_checksums: bool) -> None:
        self._connection = connection
        self._view = view
        self._has_checksums = has_checksums
        self._buffer = bytearray()
        self._tail = b""

    def follow(self) -> None:
        """Acknowledge each transfer until the connection ends."""
        with suppress(OSError):
            while data := self._connection.recv(_CHUNK):
                self._buffer += data
                self._skip_handshake()
                while self._take_transfer():
                    pass

    def _skip_handshake(self) -> None:
        """Remove the broker's greeting and, if it follows, its proof; a transfer begins with zeros."""
        buffer = self._buffer
        if buffer.startswith(MAGIC) and len(buffer) >= _HELLO_FRONT_BYTES:
            end = _HELLO_FRONT_BYTES + buffer[_HELLO_FRONT_BYTES - 1]
            if len(buffer) >= end + _PROOF_BYTES:
                is_transfer = buffer[end : end + 4] == bytes(4)
                del buffer[: end if is_transfer else end + _PROOF_BYTES]

    def _take_transfer(self) -> bool:
        buffer = self._buffer
        if len(buffer) < _HEAD.size or buffer.startswith(MAGIC):
            return False
        position, size = _HEAD.unpack_from(buffer)
        end = _HEAD.size + size
        if not 0 <= size <= _BODY_BYTES_MAX or len(buffer) < end:
            return False
        self._view.streamed_bytes += size
        self._tail = (self._tail + bytes(buffer[_HEAD.size : end]))[-_TAIL_BYTES:]
        del buffer[:end]
        acknowledged = (position + size).to_bytes(8, "big", signed=True)
        checksum = zlib.crc32(self._tail).to_bytes(4, "big") if self._has_checksums else b""
        self._connection.sendall(acknowledged + checksum)
        return True
