"""The name server: its tables, served over the remoting protocol."""

import asyncio
from functools import partial
from typing import Final

from mqproof.impl.namesrv import administration, brokers, queries
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.namesrv.route_table import LiveBroker, RouteTable
from mqproof.impl.namesrv.services import Processor, Services, now_ms
from mqproof.impl.remoting.channel import Channel, Handler
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.config_file import ConfigFile
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
        processors = {code: _bound(work, self._services) for code, work in PROCESSORS.items()}
        self._server = RemotingServer(
            runtime.remoting,
            handler(processors),
            connections_max=runtime.connections_max,
            on_closed=self._channel_closed,
            supervisor=runtime.supervisor,
        )
        self._supervisor = runtime.supervisor
        self._scan: asyncio.Task[None] | None = None

    async def start(self) -> Address:
        """Start to accept connections. Returns the address.

        Raises:
            ConfigError, OSError: kvConfig.json cannot be read, or the port is taken.
        """
        config = self._services.config
        self._services.kv.load()
        self._services.started_ms = now_ms()
        address = await self._server.start(config.host, config.port)
        self._emit_start()
        self._scan = self._supervisor.run("scan for silent brokers", self._expire_silent())
        return address

    async def stop(self) -> None:
        """Stop accepting connections, and close all of them."""
        if self._scan is not None:
            self._scan.cancel()
            await asyncio.gather(self._scan, return_exceptions=True)
        await self._server.stop()

    def kill(self) -> None:
        """End a simulated process: everything stops where it is, without notifying any peer."""
        if self._scan is not None:
            self._scan.cancel()
        self._server.kill()

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
            await asyncio.sleep(self._services.config.scan_interval_ms / 1000)
            self._report_lost(self._services.table.expire(now_ms()), "silent")

    def _report_lost(self, lost: list[LiveBroker], reason: str) -> None:
        for live in lost:
            self._services.emit(Kind.EXPIRE, live.key.broker_name, live.key.address, reason=reason)


def _bound(work: Processor, services: Services) -> Handler:
    return partial(work, services)
