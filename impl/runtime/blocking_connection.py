"""A TCP connection for a thread that waits for what it needs, without an event loop."""

import contextlib
import errno
import select
import socket
import time
from typing import Final

from mqproof.impl.runtime.network import Address

_RECEIVE_BYTES: Final = 16 * 1024


class BlockingConnection:
    """An open connection, used by one thread at a time. `interrupt` may be called from another thread.

    Its methods raise TimeoutError at the deadline, a time of `monotonic_s`, and OSError for other failures.
    """

    def __init__(self, address: Address, deadline_s: float) -> None:
        """Connect to an IP address and a port."""
        self._socket = socket.create_connection(address, _left_s(deadline_s))
        try:
            if self._socket.getsockname() == self._socket.getpeername():
                raise OSError(errno.ECONNREFUSED, f"the connection to {address} leads back to itself")
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self._socket.close()
            raise
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)

    @property
    def is_quiet(self) -> bool:
        """Whether the peer has neither closed the connection nor sent bytes that are not received yet."""
        return not self._readable.poll(0)

    def send(self, data: bytes, deadline_s: float) -> None:
        self._socket.settimeout(_left_s(deadline_s))
        self._socket.sendall(data)

    def receive(self, deadline_s: float) -> bytes:
        """Return the next bytes, at least one. Raises ConnectionResetError when the peer has closed."""
        self._socket.settimeout(_left_s(deadline_s))
        data = self._socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError(errno.ECONNRESET, "the peer has closed the connection")
        return data

    def interrupt(self) -> None:
        """Let the thread that uses the connection fail at once. It must then close the connection."""
        with contextlib.suppress(OSError):  # closed already, by the peer or by the thread
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


def is_ip_address(host: str) -> bool:
    """Return whether the host is an IP address, so that a connection to it needs no name resolution."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):  # ValueError: a character that no host name has
            continue
        return True
    return False


def monotonic_s() -> float:
    """Return the monotonic time in seconds, which is also the time of an event loop."""
    return time.monotonic()


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError(errno.ETIMEDOUT, "the time limit has passed")
    return left_s
