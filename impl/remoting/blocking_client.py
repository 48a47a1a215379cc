"""A client for a thread without an event loop: it sends a request, and waits for the response to it."""

import logging
from typing import Final

from mqproof.impl.remoting.channel import ConnectError, ConnectionLostError, RequestTimeoutError
from mqproof.impl.remoting.client import CONNECT_TIMEOUT_S
from mqproof.impl.remoting.command import Command, decode, encode
from mqproof.impl.remoting.frame import FrameError, read_frame
from mqproof.impl.runtime.blocking_connection import BlockingConnection, monotonic_s
from mqproof.impl.runtime.network import Address

_log = logging.getLogger(__name__)

_MS: Final = 1000


class BlockingRemotingClient:
    """Sends requests as RemotingClient does, with one connection per address, opened on first use.

    One thread at a time uses it. A failed request closes its connection. Requests from servers are ignored.
    """

    def __init__(self) -> None:
        self._connections: dict[Address, BlockingConnection] = {}
        self._is_closed = False

    def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        """Return the response to the request. Connecting counts towards timeout_s.

        Raises:
            ConnectError: nothing was sent.
            ConnectionLostError, RequestTimeoutError: sent, outcome unknown.
            ValueError: the request's header is too long; nothing was sent.
        """
        frame = encode(request)
        deadline_s = monotonic_s() + timeout_s
        connection = self._connected(address, deadline_s)
        try:
            connection.send(frame, deadline_s)
            return _answer(connection, request.opaque, deadline_s)
        except BaseException as error:  # also KeyboardInterrupt: the response may be read halfway
            self._drop(address)
            if isinstance(error, TimeoutError):
                text = f"no answer from {address} within {round(timeout_s * _MS)} ms"
                raise RequestTimeoutError(text) from None
            if isinstance(error, FrameError):
                _log.warning("closing the connection to %s: %s", address, error)
            if isinstance(error, OSError | FrameError):
                raise ConnectionLostError(f"the connection to {address} was lost") from None
            raise

    def interrupt(self) -> None:
        """Let the request in progress fail, and later ones. May be called from another thread."""
        self._is_closed = True
        for connection in list(self._connections.values()):
            connection.interrupt()

    def close(self) -> None:
        """Close every connection. Later requests raise ConnectError."""
        self._is_closed = True
        for address in list(self._connections):
            self._drop(address)

    def _connected(self, address: Address, deadline_s: float) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is not None:
            if connection.is_quiet:
                return connection
            self._drop(address)  # the server has closed it, as it does with idle connections
        self._require_open(address)
        self._connections[address] = connection = _connect(address, deadline_s)
        if self._is_closed:  # since then, by another thread
            self._drop(address)
        self._require_open(address)
        return connection

    def _require_open(self, address: Address) -> None:
        if self._is_closed:
            raise ConnectError(f"the client is closed, no connection to {address}")

    def _drop(self, address: Address) -> None:
        self._connections.pop(address).close()


def _connect(address: Address, deadline_s: float) -> BlockingConnection:
    began_s = monotonic_s()
    until_s = min(deadline_s, began_s + CONNECT_TIMEOUT_S)
    try:
        connection = BlockingConnection(address, until_s)
    except TimeoutError:
        limit_ms = round(max(0.0, until_s - began_s) * _MS)
        raise ConnectError(f"no connection to {address} within {limit_ms} ms") from None
    except OSError as error:
        raise ConnectError(f"no connection to {address}: {error.strerror or error}") from None
    if not connection.is_quiet:  # a server that crashes at this moment, or is not accepting yet
        connection.close()
        raise ConnectError(f"the connection to {address} was lost as soon as it was made")
    return connection


def _answer(connection: BlockingConnection, opaque: int, deadline_s: float) -> Command:
    buffer = bytearray()
    while True:
        buffer += connection.receive(deadline_s)
        while (frame := read_frame(buffer)) is not None:
            command = decode(frame)
            if command.is_response and command.opaque == opaque:
                return command
