"""The HTTP server of the control interface, on the loopback interface only.

See docs/reference/control-interface.md. The load from a peer is bounded: connections, the size of a request
and the time of a connection are limited, and each connection has one request.
"""

import asyncio
import logging
from typing import Any, Final

import msgspec

from mqproof.impl.embedded.control_operations import operate
from mqproof.impl.embedded.control_request import (
    BadControlRequestError,
    ControlRequest,
    read_control_request,
)
from mqproof.impl.embedded.controlled_broker import ControlledBroker
from mqproof.impl.runtime.network import Address, Connection, Listener, Network

_log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
REQUEST_S: Final = 10.0
"""How long a request may take to arrive."""
_HOST: Final = "127.0.0.1"


class ControlServer:
    """Serves the operations of a broker over HTTP."""

    def __init__(self, broker: ControlledBroker, network: Network, port: int) -> None:
        self._broker = broker
        self._network = network
        self._port = port
        self._listener: Listener | None = None
        self._exchanges: dict[_ControlExchange, None] = {}

    async def start(self) -> Address:
        """Listen; return the address. Raises OSError when the port is in use."""
        self._listener = await self._network.listen(_HOST, self._port, self._accept)
        return self._listener.address

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._listener is not None:
            self._listener.close()
        for exchange in list(self._exchanges):
            exchange.end()

    async def answer(self, request: ControlRequest) -> tuple[str, dict[str, Any]]:
        """Return the status and the value for a request."""
        try:
            return await operate(self._broker, request)
        except BadControlRequestError as error:
            return error.status, {"error": str(error)}
        except Exception as error:  # no caller awaits this; the client must see it
            _log.exception("%s %s failed", request.method, request.path)
            return "500 Internal Server Error", {"error": f"{type(error).__name__}: {error}"}

    def forget(self, exchange: "_ControlExchange") -> None:
        self._exchanges.pop(exchange, None)

    def _accept(self, connection: Connection) -> "_ControlExchange":
        exchange = _ControlExchange(connection, self)
        if len(self._exchanges) >= CONNECTIONS_MAX:
            exchange.end()
        else:
            self._exchanges[exchange] = None
        return exchange


class _ControlExchange:
    """One connection: one request, one answer. It is a receiver."""

    def __init__(self, connection: Connection, server: ControlServer) -> None:
        self._connection = connection
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._is_answered = False
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_S, self.end)

    def end(self) -> None:
        """Close the connection at once."""
        self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()
        self._connection.abort()

    def received(self, data: bytes) -> None:
        if self._task is not None or self._is_answered:
            return  # only the first request is answered
        self._buffer += data
        try:
            request = read_control_request(self._buffer)
        except BadControlRequestError as error:
            self._send(error.status, {"error": str(error)})
            return
        if request is not None:
            self._deadline.cancel()
            self._task = asyncio.get_running_loop().create_task(self._serve(request))

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self._deadline.cancel()
        self._server.forget(self)

    async def _serve(self, request: ControlRequest) -> None:
        self._send(*await self._server.answer(request))

    def _send(self, status: str, value: dict[str, Any]) -> None:
        self._is_answered = True
        body = msgspec.json.encode(value) + b"\n"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
        )
        self._connection.write(head.encode("ascii") + body)
        self._connection.close()
