"""A name server, a broker and a client in one simulated world: no sockets, no real time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.spec.events import Event
from tests.impl.left import nothing_left
from tests.impl.no_defects import no_defects

T = TypeVar("T")

_SCENARIO_S: Final = 86_400
"""The time limit of a scenario, and of its end, in simulated seconds.

A wait that never ends would cost processor time.
"""

SMALL_STORE = StoreConfig(
    flush_mode=FlushMode.SYNC_FLUSH,
    commit_log_segment_bytes=1 << 20,
    consume_queue_segment_bytes=20_000,
    index_slots=100,
    index_entries=1000,
)


class World:
    """The whole world under one seed. `async with` starts it; brokers can be added, stopped and restarted."""

    def __init__(self, loop: SimulatedLoop, seed: int = 0, config: BrokerConfig | None = None) -> None:
        self.loop = loop
        self.network = SimulatedNetwork()
        self.disk = SimulatedDisk()
        self.runtime = simulated(loop, self.network, seed, self.disk)
        self.events: list[Event] = []
        self.config = config or BrokerConfig(store_directory="/store", port=0, store=SMALL_STORE)
        self.namesrv = NameServer(NameServerConfig(port=0), self.runtime)
        self.namesrv_address = Address("", 0)
        self.broker: Broker | None = None
        self.broker_address = Address("", 0)
        self.some_died = False
        """Whether a process ended without a stop; what is left of it is not examined then."""

    async def __aenter__(self) -> "World":
        self.namesrv_address = await self.namesrv.start()
        await self.start_broker()
        self.session = Session([self.namesrv_address], self.runtime)
        await self.session.start()
        self.producer = Producer(self.session, ProducerConfig("PG"), self.event_log("producer"))
        self.consumer = PullConsumer(self.session, "G", self.event_log("consumer"))
        return self

    async def __aexit__(self, failure: type[BaseException] | None, *_: object) -> None:
        async with asyncio.timeout(_SCENARIO_S):
            await self.session.stop()
            if self.broker is not None:
                await self.broker.stop()
            await self.namesrv.stop()
        if failure is None and not self.some_died:
            await nothing_left(self.loop, self.disk)

    async def start_broker(self) -> None:
        config = replace(self.config, name_servers=(self.namesrv_address,))
        self.broker = Broker(config, self.runtime, self.event_log(config.name))
        self.broker_address = await self.broker.start()

    async def stop_broker(self) -> None:
        assert self.broker is not None
        await self.broker.stop()
        self.broker = None

    def event_log(self, node: str) -> EventLog:
        return EventLog(self.events.append, node, self.runtime.clock)

    async def ask(
        self, code: RequestCode, header: headers.Header | None = None, body: bytes = b""
    ) -> Command:
        """Send one request to the broker, without producer and consumer."""
        fields = headers.write(header) if header else {}
        return await self.ask_raw(new_request(code, fields, body))

    async def ask_raw(self, request: Command) -> Command:
        return await self.session.remoting.invoke(self.broker_address, request, 30.0)


def play(
    scenario: Callable[[World], Awaitable[T]], *, seed: int = 0, config: BrokerConfig | None = None
) -> T:
    """Run a scenario in a new world."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with World(loop, seed, config) as world, asyncio.timeout(_SCENARIO_S):
            return await scenario(world)

    with no_defects():
        return run_simulated(main(), loop)
