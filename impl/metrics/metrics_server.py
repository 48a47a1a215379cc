"""The HTTP server of a process: `/metrics`, `/healthz` and `/readyz`.

- `/metrics` has the metrics of all servers of the process.
- `/healthz` answers 200 as long as no task of a server has failed. Otherwise the process is about to end.
- `/readyz` answers 200 if every server has started and can do all of its work, otherwise 503 and the reasons.

The load from a peer is bounded: connections, the size of a request and the time of a connection are limited,
and a page of metrics is reused for one second.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from mqproof.impl.metrics.config import MetricsConfig
from mqproof.impl.metrics.families import Family, Metric, MetricType, Source, Value
from mqproof.impl.metrics.http_request import BadRequestError, HttpRequest, read_request
from mqproof.impl.metrics.text_format import CONTENT_TYPE, render
from mqproof.impl.runtime.network import Address, Connection, Listener
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.runtime import Runtime

_log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
CONNECTION_S: Final = 10.0
"""How long a connection may last in total."""
FRESH_S: Final = 1.0
"""How long a page of metrics is reused."""
PAGE: Final = "/metrics"
PAGES_MAX: Final = 4
"""The most connections that may receive metrics at the same time, because a page can be large."""

READY: Final = Metric(
    "mqproof_ready",
    MetricType.GAUGE,
    "1 if the server has started and can do all of its work, as in /readyz; otherwise 0.",
    ("server",),
)


class MetricsServer:
    """Serves the metrics of its sources over HTTP. `expected` names the sources that are added later."""

    def __init__(self, config: MetricsConfig, runtime: Runtime, expected: Iterable[str] = ()) -> None:
        self._expected = tuple(expected)
        self.sources: dict[str, Source | None] = dict.fromkeys(self._expected)
        """The servers of the process by name; None for one that is not made yet."""
        self._config = config
        self._runtime = runtime
        self._listener: Listener | None = None
        self._connections: dict[_Exchange, None] = {}
        self._notices = Notices(_log)
        self._scraping = asyncio.Lock()
        self._page = b""
        self._page_s: float | None = None

    async def start(self) -> Address:
        """Listen; return the address. Raises OSError when the port is in use."""
        network, config = self._runtime.network, self._config
        self._listener = await network.listen(config.metrics_host, config.metrics_port, self._accept)
        address = self._listener.address
        if not address.host.startswith(("127.", "::1")):
            _log.warning(
                "every client that reaches %s can read the metrics: there is no authentication", address
            )
        return address

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._listener is not None:
            self._listener.close()
        for exchange in list(self._connections):
            exchange.end()

    async def answer(self, path: str) -> tuple[str, str, bytes]:
        """Return the status, the content type and the body of a page."""
        if path == PAGE:
            return "200 OK", CONTENT_TYPE, await self._metrics()
        if path == "/healthz":
            failure = self._runtime.supervisor.failure
            return _verdict([str(failure)] if failure else [])
        if path == "/readyz":
            return _verdict(self.unready())
        return _plain("404 Not Found", "pages: /metrics /healthz /readyz")

    def unready(self) -> list[str]:
        """Return why the process is not ready, in lines `NAME: REASON`; empty if it is."""
        failure = self._runtime.supervisor.failure
        lines = [str(failure)] if failure else []
        for name, source in self.sources.items():
            if reason := source.unready() if source else "not started":
                lines.append(f"{name}: {reason}")
        return lines

    @property
    def pages(self) -> int:
        """The number of connections that receive a page of metrics."""
        return sum(exchange.is_scrape for exchange in self._connections)

    def forget(self, exchange: "_Exchange") -> None:
        self._connections.pop(exchange, None)

    def _accept(self, connection: Connection) -> "_Exchange":
        exchange = _Exchange(connection, self)
        if len(self._connections) >= CONNECTIONS_MAX:
            # An idle connection must not keep out a scrape.
            silent = next((other for other in self._connections if other.is_silent), None)
            (silent or exchange).end()
            host = connection.remote.host
            self._notices.warn(
                host, f"closed a connection to the metrics: {host} opened one more than {CONNECTIONS_MAX}"
            )
            if silent is None:
                return exchange
            self.forget(silent)
        self._connections[exchange] = None
        return exchange

    def _ready(self) -> Family:
        servers = {name: self.sources[name] for name in self._expected}
        ready: dict[tuple[str, ...], Value] = {
            (name,): int(one is not None and not one.unready()) for name, one in servers.items()
        }
        return Family(READY, {}, ready)

    async def _metrics(self) -> bytes:
        """Return the page. Requests that come meanwhile get the same one."""
        loop = asyncio.get_running_loop()
        async with self._scraping:
            if self._page_s is None or loop.time() - self._page_s >= FRESH_S:
                families = [self._ready()]
                for source in self.sources.values():
                    families += await source.collect() if source else []
                self._page = await self._runtime.offload(lambda: render(families))
                self._page_s = loop.time()
            return self._page


class _Exchange:
    """One connection: one request, one answer. It is a receiver."""

    def __init__(self, connection: Connection, server: MetricsServer) -> None:
        self.is_scrape = False
        """Whether it asked for the metrics."""
        self._connection = connection
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._deadline = asyncio.get_running_loop().call_later(CONNECTION_S, self.end)

    @property
    def is_silent(self) -> bool:
        """Whether it has not sent its request."""
        return self._task is None

    def end(self) -> None:
        """Close the connection at once."""
        self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()
        self._connection.abort()

    def received(self, data: bytes) -> None:
        if self._task is not None:
            return  # only the first request is answered
        self._buffer += data
        try:
            request = read_request(self._buffer)
        except BadRequestError as error:
            request = None
            self._connection.pause_reading()
            self._send(*_plain(error.status, error.status))
        if request is not None:
            self._connection.pause_reading()
            self._buffer.clear()
            if request.path == PAGE and self._server.pages >= PAGES_MAX:
                self._send(*_plain("503 Service Unavailable", f"{PAGES_MAX} scrapes are in progress"))
                return
            self.is_scrape = request.path == PAGE
            self._task = asyncio.get_running_loop().create_task(self._serve(request))

    def write_paused(self) -> None: ...
    def write_resumed(self) -> None: ...

    def closed(self) -> None:
        self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()
        self._server.forget(self)

    async def _serve(self, request: HttpRequest) -> None:
        try:
            answer = await self._server.answer(request.path)
        except (
            Exception
        ) as error:  # a page that fails must not end the server, and no caller awaits this task
            _log.exception("the page %r failed", request.path)
            answer = _plain("500 Internal Server Error", f"{type(error).__name__}: {error}")
        self._send(*answer, wants_body=request.wants_body)

    def _send(self, status: str, kind: str, body: bytes, *, wants_body: bool = True) -> None:
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n"
        )
        self._connection.write(head.encode("ascii") + (body if wants_body else b""))
        self._connection.close()


def _verdict(problems: list[str]) -> tuple[str, str, bytes]:
    if problems:
        return _plain("503 Service Unavailable", "\n".join(problems))
    return _plain("200 OK", "ok")


def _plain(status: str, text: str) -> tuple[str, str, bytes]:
    return status, "text/plain; charset=utf-8", f"{text}\n".encode(errors="replace")
