"""One request over a connection of its own, answered or not: how readiness is asked for."""

import socket

from mqproof.impl.remoting.command import Command, decode, encode
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX, FrameError, read_frame
from mqproof.impl.runtime.network import Address


def ask(address: Address, request: Command, seconds_max: float) -> Command | None:
    """The answer, or None when there is none: refused, silent, or no frame.

    What else the peer sends on the connection is not looked at.
    """
    try:
        with socket.create_connection((address.host, address.port), seconds_max) as connection:
            connection.sendall(encode(request))
            return decode(_frame(connection))
    except (OSError, FrameError):
        return None


def _frame(connection: socket.socket) -> bytes:
    buffer = bytearray()
    while (frame := read_frame(buffer, FRAME_BYTES_MAX)) is None:
        if not (received := connection.recv(1 << 16)):
            raise FrameError("the peer closed the connection before its answer")
        buffer += received
    return frame
