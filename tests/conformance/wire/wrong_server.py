"""A tiny server that answers as it is told, rightly or wrongly."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, encode, take
from mqproof.conformance.wire.talk import Address

Reply = Callable[[Frame], bytes | None]
"""What is written when a request has come: any bytes, or None for closing the connection."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the server reads: by frames that may come in pieces, unless it is told otherwise."""

    whole_only: bool = False
    """A frame that does not come in one piece is lost."""
    first_only: bool = False
    """Of the frames that come in one piece only the first is seen."""


def answer(request: Frame, code: int = 0, body: bytes = b"", **fields: str) -> bytes:
    return encode(Frame(code, request.opaque, RESPONSE, fields=fields, body=body))


def is_oneway(request: Frame) -> bool:
    return bool(request.flag & ONEWAY)


@contextmanager
def serving(reply: Reply, reading: Reading | None = None) -> Iterator[Address]:
    """The server's address; it ends with the block."""
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
