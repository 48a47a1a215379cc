"""A port that forwards everything to a server, in both directions."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from mqproof.impl.remoting.frame import FrameError
from mqproof.impl.runtime.network import Address

_CHUNK_BYTES: Final = 1 << 16

Way = Callable[[bytes], Iterable[bytes]]
"""Maps received bytes to the bytes to forward, for one direction of one connection."""


class Relay:
    """A port that forwards bytes in both directions; it listens in a `with` block.

    `ways` is called for each connection; it returns the functions for the client's and for the server's
    bytes.
    """

    def __init__(self, server: Address, ways: Callable[[], tuple[Way, Way]]) -> None:
        self._server = server
        self._ways = ways
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []

    @property
    def address(self) -> Address:
        return Address(*self._listener.getsockname())

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _close(self._listener)
        self.hang_up()

    def hang_up(self) -> None:
        """Close every connection; new ones are still accepted."""
        for one in list(self._open):
            _close(one)
        self._open.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the relay is closed
            self._open.append(client)
            try:
                server = socket.create_connection((self._server.host, self._server.port))
            except OSError:
                _close(client)
                continue
            self._open.append(server)
            from_client, from_server = self._ways()
            for each in ((client, server, from_client), (server, client, from_server)):
                threading.Thread(target=self._pass, args=each, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, way: Way) -> None:
        with suppress(OSError, FrameError):  # one side closed its connection, so the other side is closed too
            while received := source.recv(_CHUNK_BYTES):
                for chunk in way(received):
                    sink.sendall(chunk)
        _close(source)
        _close(sink)


def _close(one: socket.socket) -> None:
    with suppress(OSError):  # already closed
        one.shutdown(socket.SHUT_RDWR)
    one.close()
