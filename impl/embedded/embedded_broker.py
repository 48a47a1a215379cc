"""A name server and a broker that run inside the caller's event loop."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.connection.group_claims import GroupClaims
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.broker_properties import ALWAYS_SET, broker_config
from mqproof.impl.embedded.outside_clients import OutsideClients
from mqproof.impl.embedded.request_faults import OPERATIONS, RequestFaults, fault
from mqproof.impl.embedded.stored_messages import expect_messages, stored_messages
from mqproof.impl.embedded.virtual_time import VirtualTime, of_loop
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.runtime.disk import RealDisk
from mqproof.impl.runtime.network import Address, AsyncioNetwork, Network, SimulatedNetwork
from mqproof.impl.runtime.runtime import Runtime, in_thread, inline
from mqproof.impl.runtime.simulated_disk import SimulatedDisk

T = TypeVar("T")

_OWN_PROPERTIES: Final = frozenset({*ALWAYS_SET, "brokerRole"})
"""Properties that the embedded broker sets itself, or that need a second broker."""


class EmbeddedBroker:
    """A name server and a broker, started by `async with`. Each one is isolated from all others."""

    def __init__(
        self,
        *,
        store: Path | str | None = None,
        sockets: bool = False,
        properties: Mapping[str, str] | None = None,
        ports: tuple[int, int] = (0, 0),
    ) -> None:
        """Create a broker that starts when the `async with` block is entered.

        Args:
            store: the folder of the store; by default the store is in memory.
            sockets: whether other processes can connect, over a free port of the loopback interface. By
                default only sessions of `client` can, and they use no sockets.
            properties: the broker's configuration, with the keys of RocketMQ's properties file.
            ports: those of the name server and the broker; 0 is any free port.

        Raises:
            ConfigError: an unknown key, a key that the embedded broker sets itself, or a wrong value.
        """
        self._store = None if store is None else Path(store)
        self._sockets = sockets
        self._ports = ports
        self._config = broker_config(properties or {}, _OWN_PROPERTIES, in_memory=store is None)
        self._faults = RequestFaults()
        self._claims = GroupClaims()
        self._time: VirtualTime | None = None
        self._runtime: Runtime | None = None
        self._name_server: NameServer | None = None
        self._broker: Broker | None = None
        self._address: Address | None = None

    @property
    def name_server(self) -> str:
        """The address of the name server, as HOST:PORT. Other processes can use it only with `sockets`."""
        return str(_running(self._address))

    @property
    def address(self) -> str:
        """The address of the broker itself, as HOST:PORT."""
        services = _running(self._broker).services
        return str(_running(services).address)

    @property
    def failure(self) -> str:
        """Why the broker does not work any more, although it was not stopped; empty while it works."""
        return str(_running(self._runtime).supervisor.failure or "")

    @property
    def clock(self) -> VirtualTime:
        """The time of the broker and its clients, which `advance` moves."""
        return _running(self._time)

    @property
    def runtime(self) -> Runtime:
        """The environment that the broker and its clients share: network, disk, clock, random numbers."""
        return _running(self._runtime)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the name server and the broker.

        Raises:
            StoreError, OSError: the store cannot be used.
            RuntimeError: it runs already, or it was stopped.
        """
        if self._runtime is not None:
            raise RuntimeError("an embedded broker starts once")
        self._time = of_loop(asyncio.get_running_loop())
        self._runtime = runtime = _runtime(self._time, self._store, self._sockets)
        folder = str(self._store or "store")
        namesrv_port, broker_port = self._ports
        config = NameServerConfig(port=namesrv_port, kv_path=f"{folder}/kvConfig.json")
        name_server = NameServer(config, runtime)
        self._address = await name_server.start()
        self._name_server = name_server
        configured = replace(
            self._config, port=broker_port, name_servers=(self._address,), store_directory=folder
        )
        broker = Broker(configured, runtime, around=self._faults.around)
        try:
            await broker.start()
        except BaseException:
            await self.stop()
            raise
        self._broker = broker
        for server in (broker, name_server):
            self._time.add_server(server)

    async def stop(self) -> None:
        """Stop both servers. Nothing happens if they do not run."""
        broker, self._broker = self._broker, None
        name_server, self._name_server = self._name_server, None
        if broker is not None and name_server is not None:
            self.clock.remove_server(broker)
            self.clock.remove_server(name_server)
        if broker is not None:
            await broker.stop()
        if name_server is not None:
            await name_server.stop()
        self._address = None

    def client(self, client_id: str | None = None) -> Session:
        """Return a session with this broker, to be used in `async with`. Each one is another client."""
        address = _running(self._address)
        return Session([address], _running(self._runtime), client_id, claims=self._claims)

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all stored messages of the topic, by queue and offset; empty for an unknown topic.

        `%RETRY%GROUP` and `%DLQ%GROUP` are the topics of the messages that a group failed to consume.
        """
        return stored_messages(_running(self._broker), topic)

    async def advance(self, seconds: float, *, keep_clients: bool = True) -> None:
        """Let this much time pass for clients in other threads and processes, whose time does not pass.

        When something became due, they get the machine's time to act on it: until they pull again and are
        quiet. With `keep_clients`, they stay connected; otherwise they expire when they are missed for two
        minutes.

        Raises:
            ValueError, TimeError: as VirtualTime.advance.
        """
        clients = OutsideClients(_running(self._broker), _running(self._name_server), keep=keep_clients)
        await self.clock.advance_by(seconds, clients.after_step)

    async def expect(self, topic: str, count: int = 1, *, within_s: float = 5.0) -> list[ReceivedMessage]:
        """Wait until the topic has `count` messages, and return them.

        Raises:
            ExpectationError: it has more, or after `within_s` seconds it has fewer.
        """
        return await expect_messages(self.messages, topic, count, within_s)

    def fail_next(
        self,
        operation: str,
        times: int = 1,
        *,
        code: str = "SYSTEM_BUSY",
        remark: str = "ordered by the test",
        executed: bool = False,
    ) -> None:
        """Let the next requests of a kind fail, from any client.

        Args:
            operation: send, pull, commit, send_back, end_transaction, lock or heartbeat.
            times: how many requests fail.
            code: the name of the response code of a refused request.
            remark: the text of the response.
            executed: the request is executed and its answer is lost with the connection, instead of refused.

        Raises:
            ValueError: an unknown operation or code, or `times` below 1.
        """
        self._faults.add(operation, times, fault(code, remark, is_executed=executed))

    def faults(self) -> dict[str, int]:
        """Return how many requests of each kind will still fail."""
        return {operation: self._faults.pending(operation) for operation in OPERATIONS}

    def forget_faults(self) -> None:
        """Let no further request fail."""
        self._faults.clear()


def _running(part: T | None) -> T:
    """Return a part of the broker, which exists while it runs. Raises RuntimeError if it does not."""
    if part is None:
        raise RuntimeError("the broker is not running: use it inside `async with`")
    return part


def _runtime(clock: VirtualTime, store: Path | None, sockets: bool) -> Runtime:
    network: Network = AsyncioNetwork() if sockets else SimulatedNetwork()
    chance = random.Random()
    if store is None:
        return Runtime(clock, SimulatedDisk(), network, chance, inline)
    return Runtime(clock, RealDisk(), network, chance, in_thread, has_threads=True)
