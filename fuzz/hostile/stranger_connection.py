"""A connection of a stranger or a faulty member: it sends any bytes, and collects what comes back."""

import asyncio
import struct
import zlib
from typing import Final

from mqproof.impl.remoting.command import Command, decode
from mqproof.impl.remoting.frame import FrameError, read_frame
from mqproof.impl.runtime.network import Address, Connection, Network
from mqproof.impl.runtime.security.peer_handshake import MAGIC

_HEAD: Final = struct.Struct(">qi")
_GREETING_BYTES: Final = len(MAGIC) + 32 + 1
_PROOF_BYTES: Final = 32
_BODY_BYTES_MAX: Final = 1 << 24


class Stranger:
    """The receiver of one connection to the port of clients or of members."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.answers: dict[int, Command] = {}
        """The answers by the opaque of their requests."""
        self.is_closed = False
        self._buffer = bytearray()
        self._changed = asyncio.Event()

    def received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while (frame := read_frame(self._buffer)) is not None:
                command = decode(frame)
                self.answers[command.opaque] = command
        except FrameError:
            self._buffer.clear()
        self._changed.set()

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self.is_closed = True
        self._changed.set()

    async def answer(self, opaque: int, seconds_max: float) -> Command | None:
        """Return the answer; None if the connection is closed first, or nothing comes in time."""
        try:
            async with asyncio.timeout(seconds_max):
                while opaque not in self.answers and not self.is_closed:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return None
        return self.answers.get(opaque)


class LyingSlave:
    """The receiver of a connection to the port of slaves: it acknowledges all that it receives."""

    def __init__(self, connection: Connection, *, has_checksums: bool) -> None:
        self.connection = connection
        self.streamed_bytes = 0
        self._has_checksums = has_checksums
        self._buffer = bytearray()
        self._tail = b""

    def received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer.startswith(MAGIC):
            end = _GREETING_BYTES + self._buffer[_GREETING_BYTES - 1] if len(self._buffer) > 40 else 1 << 30
            if len(self._buffer) < end + _PROOF_BYTES:
                return
            is_transfer = self._buffer[end : end + 4] == bytes(4)
            del self._buffer[: end if is_transfer else end + _PROOF_BYTES]
        while len(self._buffer) >= _HEAD.size:
            position, size = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if not 0 <= size <= _BODY_BYTES_MAX or len(self._buffer) < end:
                return
            self.streamed_bytes += size
            self._tail = (self._tail + bytes(self._buffer[_HEAD.size : end]))[-1024:]
            del self._buffer[:end]
            checksum = zlib.crc32(self._tail).to_bytes(4, "big") if self._has_checksums else b""
            self.connection.write((position + size).to_bytes(8, "big", signed=True) + checksum)

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...
    def closed(self) -> None: ...


async def connect(network: Network, address: Address) -> Stranger:
    """Open a connection. Raises OSError."""
    made: list[Stranger] = []

    def connected(connection: Connection) -> Stranger:
        made.append(Stranger(connection))
        return made[-1]

    await network.connect(address, connected)
    return made[0]


async def connect_slave(
    network: Network, address: Address, data: bytes, *, has_checksums: bool
) -> LyingSlave:
    """Open a connection to the port of slaves, and send the bytes. Raises OSError."""
    made: list[LyingSlave] = []

    def connected(connection: Connection) -> LyingSlave:
        made.append(LyingSlave(connection, has_checksums=has_checksums))
        return made[-1]

    await network.connect(address, connected)
    made[0].connection.write(data)
    return made[0]
