"""Sends one request over a connection of its own, to check whether a server is ready."""

import socket

from mqproof.impl.remoting.command import Command, decode, encode
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX, FrameError, read_frame
from mqproof.impl.runtime.network import Address


def send_request(address: Address, request: Command, seconds_max: float) -> Command | None:
    """Return the answer, or None if the connection is refused, no answer comes, or it is not a frame.

    Anything else that the peer sends on the connection is ignored.
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
            raise FrameError("the peer closed the connection before it answered")
        buffer += received
    return frame
