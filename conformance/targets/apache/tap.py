"""A port that passes everything on to a server, and notes the frames that go by in either direction."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from impl.remoting.command import Command, decode
from impl.remoting.frame import FrameError, read_frame, write_frame
from impl.runtime.network import Address

_CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Passed:
    """One frame that went by, as it came in."""

    frame: bytes
    """Its length field included."""
    command: Command
    from_server: bool


class Tap:
    """Listens in a `with` block. Pieces of what the server says may be put for others of the same length."""

    def __init__(self, server: Address, replace: Mapping[bytes, bytes] | None = None) -> None:
        self.passed: list[Passed] = []
        self._server = server
        self._replace = dict(replace or {})
        assert all(len(old) == len(new) for old, new in self._replace.items()), "frames keep their length"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]

    @property
    def address(self) -> Address:
        return Address(*self._listener.getsockname())

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._open:
            _close(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the tap is closed
            self._open.append(client)
            try:
                server = socket.create_connection((self._server.host, self._server.port))
            except OSError:
                _close(client)
                continue
            self._open.append(server)
            for way in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, from_server: bool) -> None:
        replace = self._replace if from_server else {}
        buffer = bytearray()
        with suppress(OSError, FrameError):  # one of the two went away, and so does the other
            while received := source.recv(_CHUNK_BYTES):
                buffer += received
                while (payload := read_frame(buffer)) is not None:
                    frame = write_frame(payload)
                    self.passed.append(Passed(frame, decode(payload), from_server))
                    for old, new in replace.items():
                        frame = frame.replace(old, new)
                    sink.sendall(frame)
        _close(source)
        _close(sink)


def _close(one: socket.socket) -> None:
    with suppress(OSError):  # closed already
        one.shutdown(socket.SHUT_RDWR)
    one.close()
