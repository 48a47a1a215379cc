"""A small server with configurable correct or wrong answers."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, encode, take
from mqproof.conformance.wire.server_connection import Address

Reply = Callable[[Frame], bytes | None]
"""Returns the bytes to write after a request, or None to close the connection."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the server reads frames; by default, a frame may arrive in several parts."""

    whole_only: bool = False
    """A frame that does not arrive in one part is lost."""
    first_only: bool = False
    """Of several frames that arrive together, only the first is read."""


def answer(request: Frame, code: int = 0, body: bytes = b"", **fields: str) -> bytes:
    return encode(Frame(code, request.opaque, RESPONSE, fields=fields, body=body))


def is_oneway(request: Frame) -> bool:
    return bool(request.flag & ONEWAY)


@contextmanager
def serving(reply: Reply, reading: Reading | None = None) -> Iterator[Address]:
    """Yield the server's address; the server ends with the block."""
    how = reading or Reading()
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        threading.Thread(target=_accept, args=(listener, reply, how), daemon=True).start()
        yield Address(*listener.getsockname())
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # accept() returns


def _accept(listener: socket.socket, reply: Reply, how: Reading) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, reply, how), daemon=True).start()


def _serve(connection: socket.socket, reply: Reply, how: Reading) -> None:
    buffer = bytearray()
    with connection, suppress(OSError, ValueError):
        while received := connection.recv(1 << 16):
            buffer += received
            while (request := take(buffer)) is not None:
                data = reply(request)
                if data is None:
                    return
                connection.sendall(data)
                if how.first_only:
                    buffer.clear()
            if how.whole_only:
                buffer.clear()
