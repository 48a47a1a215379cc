"""Simulates the brokers and clients of a name server over the remoting protocol.

A broker has its own connection, unless it uses that of another one: a name server removes the brokers of a
connection that closes. All names have a common prefix, so that nothing else in the name server is changed or
queried.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.suites.routing.target import Broker, Route
from mqproof.impl.client.connection.routes import Routes, publish_queues
from mqproof.impl.client.connection.session import Session
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    PERM_WRITE,
    ClusterInfo,
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigs,
    TopicRoute,
)
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime

_TIMEOUT_S: Final = 10.0
_NOTICED_S: Final = 5.0
"""The maximum time until a name server removes a broker that unregistered or whose connection closed.

5.5.0 puts such requests into a queue and answers immediately, which takes time on a busy machine.
"""
_LOOK_S: Final = 0.02
_TALK_S: Final = 50.0
_ANSWERS_TRIES: Final = 600
_ANSWERS_LOOK_S: Final = 0.1
CLUSTER: Final = "conform"
_COMPANION: Final = "companion"
"""A topic that every broker has: 5.5.0 does not accept a first registration with a single topic."""


def registration(name: str, broker_id: int, address: str, topics: Iterable[str], *, version: int) -> Command:
    """Return the registration request of a broker: each topic has one queue that is readable and writable."""
    header = headers.RegisterBrokerRequest(
        broker_name=name,
        broker_addr=address,
        cluster_name=CLUSTER,
        ha_server_addr=address,
        broker_id=broker_id,
        # For 5.x: its topics are used unchanged if its name has no master.
        enable_acting_master=False,
    )
    configs = {topic: TopicConfig(topic, read_queue_nums=1, write_queue_nums=1) for topic in topics}
    body = RegisterBrokerBody(TopicConfigs(DataVersion(counter=version, timestamp=1), configs))
    return new_request(RequestCode.REGISTER_BROKER, headers.write(header), java_json.write(body))


class Player:
    """Simulates brokers and clients. Create it on a running event loop.

    Every method raises TargetError if the name server does not answer as it should.
    """

    def __init__(self, name_server: Address, runtime: Runtime, prefix: str) -> None:
        self._name_server = name_server
        self._runtime = runtime
        self._prefix = prefix
        self._lines: dict[Broker, RemotingClient] = {}
        """The connection that each broker uses; several brokers may use one."""
        self._unused: list[RemotingClient] = []
        """Open connections of brokers that have changed to the connection of another one."""
        self._meet()

    async def register(self, broker: Broker, topics: Sequence[str], over: Broker | None = None) -> None:
        if over is not None and (unused := self._lines.get(broker)) is not self._lines[over]:
            self._lines[broker] = self._lines[over]
            if unused is not None:
                self._unused.append(unused)
        own = [self._prefix + topic for topic in (*topics, _COMPANION)]
        request = registration(
            self._prefix + broker.name, broker.broker_id, self._address(broker), own, version=len(topics)
        )
        await self._request(self._lines.setdefault(broker, RemotingClient(self._runtime.remoting)), request)

    async def register_unheard(self, broker: Broker, topics: Sequence[str], timeout_s: float) -> None:
        """Register over the existing connection; the answer is missing or comes too late."""
        own = [self._prefix + topic for topic in (*topics, _COMPANION)]
        request = registration(
            self._prefix + broker.name, broker.broker_id, self._address(broker), own, version=len(topics)
        )
        with suppress(RemotingError):
            await self._lines[broker].invoke(self._name_server, request, timeout_s)

    async def answers(self) -> None:
        """Wait until the name server answers. Raises TargetError when it takes too long."""
        for _ in range(_ANSWERS_TRIES):
            with suppress(RemotingError):
                request = new_request(RequestCode.GET_BROKER_CLUSTER_INFO)
                await self._asker.invoke(self._name_server, request, _TIMEOUT_S)
                return
            await asyncio.sleep(_ANSWERS_LOOK_S)
        raise TargetError(f"name server {self._name_server} did not answer")

    async def unregister(self, broker: Broker) -> None:
        header = headers.UnregisterBrokerRequest(
            broker_name=self._prefix + broker.name,
            broker_addr=self._address(broker),
            cluster_name=CLUSTER,
            broker_id=broker.broker_id,
        )
        line = self._lines.setdefault(broker, RemotingClient(self._runtime.remoting))
        await self._request(line, new_request(RequestCode.UNREGISTER_BROKER, headers.write(header)))
        await self._until_forgotten(broker)

    async def hang_up(self, broker: Broker) -> None:
        line = self._lines.get(broker)
        if line is None:
            return
        users = [each for each, used in self._lines.items() if used is line]
        for each in users:
            del self._lines[each]
        await line.close()
        await asyncio.sleep(_LOOK_S)
        for each in users:
            await self._until_forgotten(each)

    async def wipe_write(self, name: str) -> None:
        fields = {"brokerName": self._prefix + name}
        await self._request(self._asker, new_request(RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields))

    async def route(self, topic: str) -> Route | None:
        request = new_request(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.write(headers.RouteRequest(self._prefix + topic))
        )
        answer = await self._answer(self._asker, request)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise TargetError(f"the route of {topic}: code {answer.code}, {answer.remark}")
        route = java_json.read(TopicRoute, answer.body)
        return Route(
            {
                self._own(queue.broker_name): "write" if queue.perm & PERM_WRITE else "read"
                for queue in route.queue_datas
            },
            {self._own(data.broker_name): frozenset(data.broker_addrs) for data in route.broker_datas},
        )

    async def cluster(self) -> dict[str, frozenset[int]]:
        answer = await self._request(self._asker, new_request(RequestCode.GET_BROKER_CLUSTER_INFO))
        info = java_json.read(ClusterInfo, answer.body)
        in_cluster = set(info.cluster_addr_table.get(CLUSTER, ()))
        return {
            self._own(name): frozenset(data.broker_addrs)
            for name, data in info.broker_addr_table.items()
            if name.startswith(self._prefix) and name in in_cluster
        }

    async def publish(self, topic: str) -> frozenset[str]:
        """Return the broker names to which our own client would send, starting now."""
        name = self._prefix + topic
        try:
            route = await Routes(self._client.name_servers).refresh(name)
        except RemotingError as error:
            raise TargetError(f"name server {self._name_server}: {error}") from None
        return (
            frozenset(self._own(q.broker_name) for q in publish_queues(name, route)) if route else frozenset()
        )

    async def wait(self, seconds: float) -> None:
        """Let time pass. Brokers send requests, but do not register.

        An idle connection would be closed, and then the broker would be removed for another reason than
        silence.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, _TALK_S))
            for line in self._lines.values():
                await self._request(line, new_request(RequestCode.GET_BROKER_CLUSTER_INFO))

    async def again(self) -> None:
        """Reconnect after a restart of the name server: connections to the old process are closed."""
        await self._hang_up_all()
        self._meet()

    async def stop(self) -> None:
        """Unregister all brokers that may still be registered, and close all connections."""
        for broker in list(self._lines):
            try:
                await self.unregister(broker)
            except TargetError:
                break  # the name server is gone, with its data
        await self._hang_up_all()

    # -- internal

    async def _until_forgotten(self, broker: Broker) -> None:
        """Wait until the broker is removed. Also returns if that takes too long; the suite will detect it."""
        for _ in range(round(_NOTICED_S / _LOOK_S)):
            if broker.broker_id not in (await self.cluster()).get(broker.name, ()):
                return
            await asyncio.sleep(_LOOK_S)

    def _meet(self) -> None:
        self._asker = RemotingClient(self._runtime.remoting)
        self._client = Session([self._name_server], self._runtime)
        self._lines.clear()
        self._unused.clear()

    async def _hang_up_all(self) -> None:
        for line in (*self._lines.values(), *self._unused, self._asker, self._client.remoting):
            await line.close()

    async def _request(self, line: RemotingClient, request: Command) -> Command:
        answer = await self._answer(line, request)
        if answer.code != ResponseCode.SUCCESS:
            raise TargetError(f"request {request.code} is refused: code {answer.code}, {answer.remark}")
        return answer

    async def _answer(self, line: RemotingClient, request: Command) -> Command:
        try:
            return await line.invoke(self._name_server, request, _TIMEOUT_S)
        except RemotingError as error:
            raise TargetError(f"name server {self._name_server}: {error}") from None

    def _address(self, broker: Broker) -> str:
        """Return an address without a listener: a name server does not connect to brokers."""
        return f"127.0.0.1:{10_000 + 2 * (ord(broker.name) - ord('a')) + broker.broker_id}"

    def _own(self, name: str) -> str:
        return name.removeprefix(self._prefix)
