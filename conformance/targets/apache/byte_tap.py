"""A port that passes everything on to a server, byte by byte, and keeps what went by in either direction."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from impl.runtime.network import Address

_CHUNK_BYTES: Final = 1 << 16


class ByteTap:
    """Listens in a `with` block. Each connection has its own pair of records."""

    def __init__(self, server: Address) -> None:
        self.connections: list[tuple[bytearray, bytearray]] = []
        """What the client said and what the server said, by connection, in the order of their coming."""
        self._server = server
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
            said = (bytearray(), bytearray())
            self.connections.append(said)
            for source, sink, record in ((client, server, said[0]), (server, client, said[1])):
                threading.Thread(target=self._pass, args=(source, sink, record), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, record: bytearray) -> None:
        with suppress(OSError):  # one of the two went away, and so does the other
            while received := source.recv(_CHUNK_BYTES):
                record += received
                sink.sendall(received)
        _close(source)
        _close(sink)


def _close(one: socket.socket) -> None:
    with suppress(OSError):  # closed already
        one.shutdown(socket.SHUT_RDWR)
    one.close()
