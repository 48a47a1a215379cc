"""A blocking connection to a server under test, which sends and receives frames; every wait is bounded."""

import socket
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.wire.frames import Frame, take

_CHUNK: Final = 1 << 16
_CONNECT_S: Final = 10.0


class SilentError(Exception):
    """Nothing was received in time. The message is one line, as for the other errors here."""


class ClosedError(Exception):
    """The server closed the connection."""


class UnreachableError(Exception):
    """A connection cannot be established."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse HOST:PORT.

        Raises:
            ValueError: the text has another form.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ValueError(f"{text!r}: HOST:PORT expected")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Connection:
    """A connection that sorts received frames: answers by opaque, requests of the server in order."""

    def __init__(self, address: Address, seconds_max: float, source: str = "") -> None:
        """Connect to the address, from the address `source` if it is given. Raises UnreachableError."""
        self.seconds_max = seconds_max
        self._buffer = bytearray()
        self._answers: dict[int, deque[Frame]] = defaultdict(deque)
        self._requests: deque[Frame] = deque()
        try:
            self._socket = socket.create_connection(
                (address.host, address.port), _CONNECT_S, (source, 0) if source else None
            )
        except OSError as error:
            raise UnreachableError(f"{address}: no connection: {error}") from None
        # Every write is to be sent as a separate packet.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def write(self, data: bytes) -> None:
        """Send the bytes. Raises ClosedError."""
        self._socket.settimeout(self.seconds_max)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ClosedError(f"the server closed the connection: {error}") from None

    def answer(self, opaque: int) -> Frame:
        """Return the next answer with this opaque. Raises SilentError, ClosedError, MalformedError."""
        for _ in self._received():
            if self._answers[opaque]:
                return self._answers[opaque].popleft()
        raise SilentError(f"no answer within {self.seconds_max:g} s")

    def has_answer(self, opaque: int) -> bool:
        """Return whether another answer with this opaque has been received."""
        return bool(self._answers[opaque])

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the connection. Returns at once, and drops what has been received."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(_CHUNK):
                pass
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def request(self, code: int) -> Frame:
        """Return the server's next request with this code; others are skipped.

        Raises the errors of `answer`.
        """
        for _ in self._received():
            while self._requests:
                if (frame := self._requests.popleft()).code == code:
                    return frame
        raise SilentError(f"the server did not send a request with code {code} within {self.seconds_max:g} s")

    def until_closed(self) -> None:
        """Wait until the server closes the connection. Raises SilentError if it does not do so in time."""
        try:
            for _ in self._received():
                pass
        except ClosedError:
            return
        raise SilentError(f"the connection is still open after {self.seconds_max:g} s")

    def _received(self) -> Iterator[None]:
        """Yield once at first, and whenever frames have been received, until the time is over."""
        deadline = time.monotonic() + self.seconds_max
        yield
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                received = self._socket.recv(_CHUNK)
            except TimeoutError:
                return
            except OSError as error:
                raise ClosedError(f"the server closed the connection: {error}") from None
            if not received:
                raise ClosedError("the server closed the connection")
            self._buffer += received
            while (frame := take(self._buffer)) is not None:
                if frame.is_response:
                    self._answers[frame.opaque].append(frame)
                else:
                    self._requests.append(frame)
            yield


@contextmanager
def connected(address: Address, seconds_max: float, source: str = "") -> Iterator[Connection]:
    """Yield a connection, closed at the end. Raises UnreachableError."""
    connection = Connection(address, seconds_max, source)
    try:
        yield connection
    finally:
        connection.close()
