"""The name server: its tables behind the remoting protocol."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from impl.event_log import EventLog
from impl.namesrv.registration import read_topics
from impl.namesrv.route_table import BrokerKey, LiveBroker, RouteTable
from impl.remoting import headers, java_json
from impl.remoting.channel import Channel, Handler, Reply
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import Command
from impl.remoting.dispatch import RefusedError, handler
from impl.remoting.headers import (
    BrokerHeartbeatRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    RouteRequest,
    UnregisterBrokerRequest,
)
from impl.remoting.server import RemotingServer
from impl.runtime.network import Address
from impl.runtime.runtime import Runtime
from spec.events import Kind

_STANDARD_JSON_SINCE = 401
"""Requests of this protocol version and later get route data in standard JSON."""


@dataclass(frozen=True, slots=True)
class NameServerConfig:
    host: str = "127.0.0.1"
    port: int = 9876
    """0 is any free port."""
    scan_interval_ms: int = 10_000
    broker_expiry_ms: int = 120_000


class NameServer:
    """Serves registrations and route queries until stopped; keeps nothing on disk."""

    def __init__(self, config: NameServerConfig, runtime: Runtime, events: EventLog | None = None) -> None:
        self._config = config
        self._events = events
        self._table = RouteTable()
        processors: dict[int, Handler] = {
            RequestCode.REGISTER_BROKER: self._register,
            RequestCode.UNREGISTER_BROKER: self._unregister,
            RequestCode.BROKER_HEARTBEAT: self._heartbeat,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster_info,
        }
        self._server = RemotingServer(runtime.network, handler(processors), on_closed=self._channel_closed)
        self._scan: asyncio.Task[None] | None = None

    async def start(self) -> Address:
        """Accept connections; returns where. Raises OSError when the port is taken."""
        address = await self._server.start(self._config.host, self._config.port)
        self._scan = asyncio.create_task(self._expire_silent())
        return address

    async def stop(self) -> None:
        """Stop accepting, close all connections and forget everything."""
        if self._scan is not None:
            self._scan.cancel()
            with suppress(asyncio.CancelledError):
                await self._scan
        await self._server.stop()

    def _register(self, request: Command, channel: Channel) -> Reply:
        header = headers.read(RegisterBrokerRequest, request.fields)
        key = BrokerKey(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
        master = self._table.register(
            key,
            read_topics(header, request.body),
            ha_address=header.ha_server_addr,
            connection=id(channel),
            now_ms=_now_ms(),
            expiry_ms=self._config.broker_expiry_ms,
        )
        self._emit(Kind.REGISTER, key.broker_name, key.address)
        response = RegisterBrokerResponse()
        if master is not None:
            response = RegisterBrokerResponse(master.ha_address, master.key.address)
        return request.answer(ResponseCode.SUCCESS, headers.write(response))

    def _unregister(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        header = headers.read(UnregisterBrokerRequest, request.fields)
        key = BrokerKey(header.cluster_name, header.broker_name, header.broker_id, header.broker_addr)
        if self._table.unregister(key):
            self._emit(Kind.UNREGISTER, key.broker_name, key.address)
        return request.answer(ResponseCode.SUCCESS)

    def _heartbeat(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        header = headers.read(BrokerHeartbeatRequest, request.fields)
        if self._table.heartbeat(header.cluster_name, header.broker_addr, _now_ms()):
            self._emit(Kind.HEARTBEAT, header.broker_name, header.broker_addr)
        return request.answer(ResponseCode.SUCCESS)

    def _route(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        header = headers.read(RouteRequest, request.fields)
        route = self._table.route(header.topic)
        if route is None:
            raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"no route info of this topic: {header.topic}")
        standard = header.accept_standard_json_only or request.version >= _STANDARD_JSON_SINCE
        return request.answer(ResponseCode.SUCCESS, body=java_json.write(route, standard=standard))

    def _cluster_info(self, request: Command, channel: Channel) -> Reply:  # noqa: ARG002  # a Handler's signature
        return request.answer(ResponseCode.SUCCESS, body=java_json.write(self._table.cluster_info()))

    def _channel_closed(self, channel: Channel) -> None:
        self._report_lost(self._table.connection_closed(id(channel)), "connection closed")

    async def _expire_silent(self) -> None:
        while True:
            await asyncio.sleep(self._config.scan_interval_ms / 1000)
            self._report_lost(self._table.expire(_now_ms()), "silent")

    def _report_lost(self, lost: list[LiveBroker], reason: str) -> None:
        for live in lost:
            self._emit(Kind.EXPIRE, live.key.broker_name, live.key.address, reason)

    def _emit(self, kind: Kind, broker_name: str, address: str, reason: str | None = None) -> None:
        if self._events is not None:
            attrs = {"broker": broker_name, "address": address}
            self._events.emit(kind, attrs={**attrs, "reason": reason} if reason else attrs)


def _now_ms() -> int:
    """The event loop's clock: it never jumps, and is virtual in a simulation."""
    return int(asyncio.get_running_loop().time() * 1000)
