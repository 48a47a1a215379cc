"""Our name servers and client as a target for behaviours of Routing, without timers, one step at a time.

A name server consists of its request processors and tables; a tick is ten seconds of the loop's clock. The
script determines which nodes are disconnected from each other, and when a client's request arrives. A client
that polls has just started: its earlier knowledge cannot replace a route that name servers no longer report.
"""

import asyncio
import random
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

from mqproof.conformance.adapters.routing.simulated_peers import CLUSTER, registration
from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.subject import DeviationError, ImpossibleError
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.impl.client.connection.name_server_choice import NameServerChoice
from mqproof.impl.client.connection.routes import Routes, publish_queues
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.namesrv.route_table import RouteTable
from mqproof.impl.namesrv.server import PROCESSORS
from mqproof.impl.namesrv.services import Services, now_ms
from mqproof.impl.remoting.bodies import PERM_WRITE, TopicRoute
from mqproof.impl.remoting.channel import Channel, ConnectionLostError, RemotingError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.request_handler import handler
from mqproof.impl.runtime.config_file import ConfigFile
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.reference.routing import MASTER, TOPICS, Config, topics_of

T = TypeVar("T")
Broker = tuple[str, int]

_TICK_MS: Final = 10_000
_SEEDS_MAX: Final = 1000
_TURNS_MAX: Final = 20


class _NameServer:
    """A name server process; its tables are in memory."""

    def __init__(self, runtime: Runtime, expiry: int) -> None:
        config = NameServerConfig(broker_expiry_ms=expiry * _TICK_MS)
        self.table = RouteTable(config.bounds)
        services = Services(config, self.table, KvConfig("", runtime), ConfigFile("", runtime), None)
        self._handle = handler({code: partial(work, services) for code, work in PROCESSORS.items()})

    async def answer(self, request: Command, channel: object) -> Command:
        """Return the answer to a request.

        `channel` is the connection of the request; only its identity matters.
        """
        reply = self._handle(request, cast(Channel, channel))
        answer = await reply if isinstance(reply, Awaitable) else reply
        assert answer is not None, f"request {request.code} was not answered"
        return answer


class _Wire:
    """A client's requests, one at a time: each arrives, or is lost, when the script says so."""

    def __init__(self) -> None:
        self.connected: set[Address] = set()
        self.open_request: tuple[Address, Command, asyncio.Future[Command]] | None = None

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        del timeout_s  # the script decides how long it takes
        answer: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.open_request = (address, request, answer)
        return await answer

    def take(self) -> "tuple[Address, Command, asyncio.Future[Command]]":
        """Return the request in progress and the future for its answer."""
        assert self.open_request is not None
        open_request, self.open_request = self.open_request, None
        return open_request

    def is_connected(self, address: Address) -> bool:
        return address in self.connected


@dataclass(slots=True)
class _Client:
    wire: _Wire
    choice: NameServerChoice
    polling: "asyncio.Task[TopicRoute | None] | None" = None
    answered: bool = False
    source: str = "none"
    """The topic's own route, or that of the default topic."""
    route: TopicRoute | None = None


class SteppedNameServers:
    """Drives name servers and clients through a behaviour of Routing.

    Names of variables and actions are those of Routing.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._servers_over_time = [state["server"] for state in script.states()]
        self._loop = StepLoop()
        self._run = self._loop.run
        self._config: Config = bounded("Routing", script.configuration)
        config = self._config
        self._addresses: dict[str, Address] = {
            n: Address("127.0.0.1", 9876 + at) for at, n in enumerate(config.name_servers)
        }
        self._servers: dict[str, _NameServer | None] = {
            n: _NameServer(self._loop.runtime, config.expiry) for n in config.name_servers
        }
        self._lines: dict[tuple[str, Broker], object] = {}
        """The connection of a broker's last registration, as the name server sees it."""
        self._cut: set[tuple[str, Any]] = set()
        self._created = set(script.initial["created"])
        chosen = dict(zip(config.clients, script.initial["server"], strict=True))
        self._clients = {client: self._run(self._started(server)) for client, server in chosen.items()}

    def take(self, at: int) -> None:
        step = self._steps[at]
        parameters = [tuple(each) if isinstance(each, list) else each for each in step.parameters]
        self._server_of = dict(zip(self._clients, self._servers_over_time[at], strict=True))
        if step.action not in _ACTIONS:
            raise ImpossibleError(f"the action {step.action} is not supported")
        self._run(_ACTIONS[step.action](self, *parameters))

    def look(self) -> Variables:
        return self._run(self._look())

    def refuses(self, step: Stimulus) -> bool:
        """Try an action that must change nothing: an extra scan, or a wipe without writable queues."""
        server = self._servers.get(step.parameters[0]) if step.action in ("Scan", "WipeWrite") else None
        if server is None:
            return False
        if step.action == "WipeWrite" and _is_written(self.look(), self._config, *step.parameters):
            return False  # only the model's limit of failures forbids it
        self._run(_ACTIONS[step.action](self, *step.parameters))
        return True

    def close(self) -> None:
        self._loop.close()

    # Brokers register, name servers forget

    async def _register(self, broker: Broker) -> None:
        topics = topics_of(broker, self._created)
        for n, server in self._servers.items():
            if server is not None and (n, broker) not in self._cut:
                line = self._lines.setdefault((n, broker), object())
                request = registration(*broker, _address(self._config, broker), topics, version=len(topics))
                _expect_success(await server.answer(request, line))

    async def _scan(self, n: str) -> None:
        self._serving(n).table.expire(now_ms())

    async def _auto_create(self, client: str, name: str) -> None:
        """Create a topic: a broker that receives a message of an unknown topic registers with it."""
        del client
        self._created.add(name)
        await self._register((name, MASTER))

    # Clients poll

    async def _poll(self, client: str) -> None:
        state = self._clients[client]
        n = await self._polled_server(client)
        server = self._servers[n]
        if n != self._server_of[client] or server is None:
            raise ImpossibleError(f"{client} switched to {n} when its connection closed")
        state.source, state.route = "topic", await self._answered(state, server)
        if state.route is None:
            # A producer without a route uses the queues of the default topic for a new topic.
            state.polling = asyncio.ensure_future(Routes(state.choice).refresh(TOPICS[1]))
            await _until_it_rests(state)
            state.source, state.route = "default", await self._answered(state, server)
        state.answered = True

    async def _answered(self, client: _Client, server: _NameServer) -> TopicRoute | None:
        """Answer the request in progress; return the client's result."""
        address, request, answer = client.wire.take()
        client.wire.connected.add(address)
        answer.set_result(await server.answer(request, client.wire))
        assert client.polling is not None
        route, client.polling = await client.polling, None
        return route

    async def _poll_fails(self, client: str, following: str) -> None:
        """Let the request fail.

        A following request, if there is one, is held until the script lets it arrive.
        """
        state = self._clients[client]
        state.answered = False
        n = await self._polled_server(client)
        if n == following != self._server_of[client]:
            return  # its connection was closed, so it did not even try
        address, _, answer = state.wire.take()
        state.wire.connected.discard(address)
        answer.set_exception(ConnectionLostError(f"{n} did not answer"))
        await _until_it_rests(state)
        if state.polling is not None and state.polling.done():
            assert isinstance(state.polling.exception(), RemotingError)
            state.polling = None

    async def _polled_server(self, client: str) -> str:
        """Return the name server of the client's request in progress; start a poll if there is none."""
        state = self._clients[client]
        if state.polling is None:
            state.polling = asyncio.ensure_future(Routes(state.choice).refresh(TOPICS[0]))
            await _until_it_rests(state)
        assert state.wire.open_request is not None, f"{client} sent no request"
        return self._name_of(state.wire.open_request[0])

    # Time passes

    async def _tick(self) -> None:
        await asyncio.sleep(_TICK_MS / 1000)

    # Failures

    async def _broker_dies(self, broker: Broker) -> None:
        for n, server in self._servers.items():
            line = self._lines.pop((n, broker), None)
            if server is not None and line is not None and (n, broker) not in self._cut:
                server.table.connection_closed(id(line))

    async def _machine_dies(self, broker: Broker) -> None:
        for n in self._servers:
            self._lines.pop((n, broker), None)

    async def _close_channel(self, n: str, broker: Broker) -> None:
        self._serving(n).table.connection_closed(id(self._lines.pop((n, broker))))

    async def _cut_off(self, n: str, other: Any) -> None:
        self._cut.add((n, other))

    async def _name_server_dies(self, n: str) -> None:
        self._servers[n] = None
        self._lines = {ends: line for ends, line in self._lines.items() if ends[0] != n}
        for client in self._clients.values():
            client.wire.connected.discard(self._addresses[n])

    async def _wipe_write(self, n: str, name: str) -> None:
        request = new_request(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": name})
        _expect_success(await self._serving(n).answer(request, None))

    # Repairs

    async def _broker_starts(self, broker: Broker) -> None:
        """Do nothing: the broker has no connection yet, and registers in a later step."""

    async def _name_server_starts(self, n: str) -> None:
        self._servers[n] = _NameServer(self._loop.runtime, self._config.expiry)

    async def _heal(self, n: str, other: Any) -> None:
        self._cut.remove((n, other))

    # Observations

    async def _look(self) -> dict[str, Any]:
        config = self._config
        clients = self._clients.values()
        return {
            "tables": [
                _tables(config, server.table if server else None) for server in self._servers.values()
            ],
            "server": [self._name_of((await client.choice.known())[0]) for client in clients],
            "answered": sorted(name for name, client in self._clients.items() if client.answered),
            "route": [_route(config, client) for client in clients],
            "publish": [_publish(config, client.route) for client in clients],
        }

    # Helper methods

    async def _started(self, server: str) -> _Client:
        """Return a client that happens to ask this name server first."""
        first, addresses = self._addresses[server], list(self._addresses.values())
        for seed in range(_SEEDS_MAX):
            wire = _Wire()
            choice = NameServerChoice(
                cast(RemotingClient, wire), self._loop.runtime.network, addresses, random.Random(seed)
            )
            if (await choice.known())[0] == first:
                return _Client(wire, choice)
        raise AssertionError(f"no client polls {server} first")

    def _serving(self, n: str) -> _NameServer:
        server = self._servers[n]
        assert server is not None, f"{n} does not run"
        return server

    def _name_of(self, address: Address) -> str:
        return next(n for n, each in self._addresses.items() if each == address)


_ACTIONS: Final[Mapping[str, Any]] = {
    "Register": SteppedNameServers._register,
    "AutoCreate": SteppedNameServers._auto_create,
    "Scan": SteppedNameServers._scan,
    "Poll": SteppedNameServers._poll,
    "PollFails": SteppedNameServers._poll_fails,
    "Tick": SteppedNameServers._tick,
    "BrokerDies": SteppedNameServers._broker_dies,
    "MachineDies": SteppedNameServers._machine_dies,
    "CloseChannel": SteppedNameServers._close_channel,
    "CutBroker": SteppedNameServers._cut_off,
    "CutClient": SteppedNameServers._cut_off,
    "NameServerDies": SteppedNameServers._name_server_dies,
    "WipeWrite": SteppedNameServers._wipe_write,
    "BrokerStarts": SteppedNameServers._broker_starts,
    "NameServerStarts": SteppedNameServers._name_server_starts,
    "HealBroker": SteppedNameServers._heal,
    "HealClient": SteppedNameServers._heal,
}


async def _until_it_rests(client: _Client) -> None:
    """Wait until the client's request is in progress, or its poll has ended."""
    for _ in range(_TURNS_MAX):
        if client.wire.open_request is not None or (client.polling is not None and client.polling.done()):
            return
        await asyncio.sleep(0)
    raise DeviationError("a polling client sent no request")


def _expect_success(answer: Command) -> None:
    if answer.code != ResponseCode.SUCCESS:
        raise DeviationError(f"answered {answer.code}: {answer.remark}")


def _address(config: Config, broker: Broker) -> str:
    return str(Address("127.0.0.1", 10_911 + 2 * config.brokers.index(broker)))


# The tables of name servers and the routes of clients, as the model's variables


def _tables(config: Config, table: RouteTable | None) -> dict[str, Any]:
    table = table or RouteTable()
    known = table.cluster_info()
    live = [table.live(CLUSTER, _address(config, broker)) for broker in config.brokers]
    return {
        "queues": [_permissions(config, table.route(topic)) for topic in TOPICS],
        "members": [
            sorted(known.broker_addr_table[name].broker_addrs) if name in known.broker_addr_table else []
            for name in config.names
        ],
        "cluster": sorted(known.cluster_addr_table.get(CLUSTER, ())),
        "live": [
            {"age": (now_ms() - one.last_update_ms) // _TICK_MS, "version": one.data_version.counter}
            if one
            else {"age": 0, "version": 0}
            for one in live
        ],
    }


def _permissions(config: Config, route: TopicRoute | None) -> list[str]:
    permissions = {data.broker_name: data.perm for data in route.queue_datas} if route else {}
    return [
        "none" if name not in permissions else "write" if permissions[name] & PERM_WRITE else "read"
        for name in config.names
    ]


def _route(config: Config, client: _Client) -> dict[str, Any]:
    route = client.route
    members = {data.broker_name: sorted(data.broker_addrs) for data in route.broker_datas} if route else {}
    return {
        "source": client.source if route else "none",
        "queues": _permissions(config, route),
        "members": [members.get(name, []) for name in config.names],
    }


def _publish(config: Config, route: TopicRoute | None) -> list[bool]:
    names = {queue.broker_name for queue in publish_queues(TOPICS[0], route)} if route else set()
    return [name in names for name in config.names]


def _is_written(shown: Variables, config: Config, n: str, name: str) -> bool:
    queues = shown["tables"][config.name_servers.index(n)]["queues"]
    return any(permissions[config.names.index(name)] == "write" for permissions in queues)
