"""The name server: its tables, served over the remoting protocol."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

from mqproof.impl.access.acl_file import POLL_S, AclFile
from mqproof.impl.access.gate import Gate
from mqproof.impl.namesrv import administration, brokers, queries
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.namesrv.route_table import LiveBroker, RouteTable
from mqproof.impl.namesrv.services import Processor, Services, now_ms
from mqproof.impl.remoting.budget import Budget, Percentages, server_budgets
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.requests import BODIES_USED, limiting
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.disk import parent
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.spec.events import Kind

PROCESSORS: Final[dict[int, Processor]] = {
    **brokers.PROCESSORS,
    **queries.PROCESSORS,
    **administration.PROCESSORS,
}
"""The processor of each request code."""

_MISSED_MS: Final = 40_000
"""A broker or client is missing after this time; brokers register every 30 s."""


class NameServer:
    """Serves registrations and route queries until stopped. Only the KV configuration is persistent."""

    def __init__(self, config: NameServerConfig, runtime: Runtime, events: EventLog | None = None) -> None:
        self._services = Services(
            config,
            RouteTable(config.bounds),
            KvConfig(config.kv_path, runtime),
            ConfigFile(config.config_path, runtime),
            events,
        )
        self._gate: Gate | None = None
        if config.acl_enabled:
            path = config.acl_path or f"{parent(config.kv_path)}/plain_acl.yml"
            self._gate = Gate(AclFile(path, runtime))
        processors = {code: _bound(work, self._services) for code, work in PROCESSORS.items()}
        self._processors = limiting(handler(processors))
        self._server = RemotingServer(
            runtime.remoting,
            self._handle,
            on_closed=self._channel_closed,
            supervisor=runtime.supervisor,
            bodies_used=BODIES_USED,
            budgets=server_budgets(
                runtime.connections_max,
                FRAME_BYTES_MAX,
                Percentages(config.address_percent, config.connection_percent),
            ),
        )
        self.address: Address | None = None
        """The address on which it accepts connections; None before the start and from the stop on."""
        self._supervisor = runtime.supervisor
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def table(self) -> RouteTable:
        return self._services.table

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets that limit what clients may use."""
        return tuple(self._server.budgets)

    async def start(self) -> Address:
        """Start to accept connections. Returns the address.

        Raises:
            ConfigError, OSError: kvConfig.json or the accounts cannot be read, or the port is taken.
        """
        config = self._services.config
        if self._gate is not None:
            self._gate.file.load()
        self._services.kv.load()
        self._services.started_ms = now_ms()
        self.address = address = await self._server.start(config.host, config.port)
        self._emit_start()
        run = self._supervisor.run
        self._tasks.append(run("scan for silent brokers", self._expire_silent()))
        if self._gate is not None:
            self._tasks.append(run("poll of the accounts", _poll(self._gate.file)))
        return address

    async def stop(self) -> None:
        """Stop accepting connections, and close all of them."""
        self.address = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.stop()

    def awaits_upkeep(self) -> bool:
        """Return whether a broker or a client is missing, which only scans end."""
        since_ms = now_ms() - _MISSED_MS
        return bool(self.table.silent_since(since_ms)) or self._server.has_silent(since_ms / 1000)

    def noticeable(self) -> object:
        """Return what the upkeep of clients acts on when it changes: the brokers and their topics."""
        return self.table.versions()

    def count_clients_as_heard(self) -> None:
        """Treat all clients as if they had just sent something, in tests whose time they do not share."""
        self._server.count_as_active()

    def kill(self) -> None:
        """End a simulated process: everything stops where it is, without notifying any peer."""
        for task in self._tasks:
            task.cancel()
        self._server.kill()

    def _handle(self, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        if self._gate is not None and request.code in PROCESSORS:
            refusal = self._gate.refusal(request, channel.remote)
            if refusal is not None:
                return refusal
        return self._processors(request, channel)

    def _emit_start(self) -> None:
        """Record the start in the event log. All tables are empty."""
        config, events = self._services.config, self._services.events
        if events is not None:
            times = {"expiry_ms": config.broker_expiry_ms, "scan_interval_ms": config.scan_interval_ms}
            events.emit(Kind.RECOVER, attrs={name: str(value) for name, value in times.items()})

    def _channel_closed(self, channel: Channel) -> None:
        self._report_lost(self._services.table.connection_closed(id(channel)), "connection closed")

    async def _expire_silent(self) -> None:
        while True:
            await upkeep.sleep(self._services.config.scan_interval_ms / 1000)
            self._report_lost(self._services.table.expire(now_ms()), "silent")

    def _report_lost(self, lost: list[LiveBroker], reason: str) -> None:
        for live in lost:
            self._services.emit(Kind.EXPIRE, live.key.broker_name, live.key.address, reason=reason)


async def _poll(file: AclFile) -> None:
    while True:
        await upkeep.sleep(POLL_S)
        await file.poll()


def _bound(work: Processor, services: Services) -> Handler:
    return partial(work, services)
