"""A slave that reports what an inspection says, and keeps what the master sends.

See docs/reference/protocol/replication.md, "Frames", "Authentication of peers" and "Replication stream".
"""

import asyncio
import hashlib
import hmac
import struct
import zlib
from typing import Any, Final

from mqproof.impl.runtime.network import Address, Connection, Network

MAGIC: Final = b"MQPEER\x00\x01"
_TAIL_BYTES: Final = 1024
_HEAD: Final = struct.Struct(">qi")


class ScriptedSlave:
    """One connection to the port of slaves."""

    def __init__(self, secret: bytes = b"", purpose: str = "") -> None:
        self.log = bytearray()
        """The bytes that arrived, one after the other."""
        self.begin: int | None = None
        """The position of the first of them."""
        self.heartbeats: list[int] = []
        """The positions of the empty transfers."""
        self.wrong: list[str] = []
        self.sizes: list[int] = []
        self.is_closed = False
        self._secret = secret
        self._purpose = purpose
        self._hello = MAGIC + bytes(range(32)) + b"\x01s"
        self._is_proved = not secret
        self._buffer = bytearray()
        self._connection: Connection | None = None

    async def open(self, network: Network, to: Address) -> "ScriptedSlave":
        await network.connect(to, self._accept)
        if self._secret:
            self._write(self._hello)
        await asyncio.sleep(0.1)
        return self

    @property
    def end(self) -> int:
        """The position after the last byte that arrived."""
        return (self.begin or 0) + len(self.log)

    def report(self, position: int, checksum: int | None = None) -> None:
        """Report a position; with a secret, prove the log before it."""
        if not self._secret:
            self._write(position.to_bytes(8, "big", signed=True))
            return
        proof = self.checksum(position) if checksum is None else checksum
        self._write(struct.pack(">qI", position, proof))

    def checksum(self, position: int, segment_bytes: int = 1 << 12) -> int:
        begin = self.begin or 0
        start = max(position - _TAIL_BYTES, (position - 1) // segment_bytes * segment_bytes, 0)
        return zlib.crc32(self.log[start - begin : position - begin]) if position else 0

    def send(self, data: bytes) -> None:
        self._write(data)

    def stop_taking(self) -> None:
        """Behave as a slave that does not read: the master must not write any more."""
        end: Any = self._connection
        end.peer.process_hears(end.peer.receiver.write_paused)

    def take_again(self) -> None:
        """Read everything."""
        end: Any = self._connection
        end.peer.process_hears(end.peer.receiver.write_resumed)

    def close(self) -> None:
        assert self._connection is not None, "call open first"
        self._connection.close()

    def _accept(self, connection: Connection) -> "ScriptedSlave":
        self._connection = connection
        return self

    def _write(self, data: bytes) -> None:
        assert self._connection is not None, "call open first"
        self._connection.write(data)

    # The receiver of the connection

    def received(self, data: bytes) -> None:
        self._buffer += data
        self._shake_hands()
        while self._is_proved and len(self._buffer) >= _HEAD.size:
            position, size = _HEAD.unpack_from(self._buffer)
            if len(self._buffer) < _HEAD.size + size:
                return
            self._take(position, bytes(self._buffer[_HEAD.size : _HEAD.size + size]))
            del self._buffer[: _HEAD.size + size]

    def _take(self, position: int, body: bytes) -> None:
        if not body:
            self.heartbeats.append(position)
            return
        if self.begin is None:
            self.begin = position
        if position != self.end:
            self.wrong.append(f"a transfer of {position}, expected {self.end}")
        self.sizes.append(len(body))
        self.log += body

    def _shake_hands(self) -> None:
        """Answer the hello of the master with a proof, and check its proof."""
        front = len(MAGIC) + 32 + 1
        if self._is_proved or len(self._buffer) < front:
            return
        end = front + self._buffer[front - 1]
        theirs = bytes(self._buffer[:end])
        if len(self._buffer) == end:
            self._write(self._proof("connecting", theirs))
        elif len(self._buffer) >= end + 32:
            if self._buffer[end : end + 32] != self._proof("accepting", theirs):
                self.wrong.append("the master's proof is wrong")
            del self._buffer[: end + 32]
            self._is_proved = True

    def _proof(self, role: str, theirs: bytes) -> bytes:
        parts = (role.encode(), self._purpose.encode(), self._hello, theirs)
        text = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self._secret, text, hashlib.sha256).digest()

    def write_paused(self) -> None:
        pass

    def write_resumed(self) -> None:
        pass

    def closed(self) -> None:
        self.is_closed = True
