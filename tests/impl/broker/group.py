"""Three brokers that elect their master, a name server and a client in one simulated world."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.dledger.config import Membership, Peer
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address, SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import StoreConfig
from mqproof.spec.events import Event
from tests.impl.left import nothing_left

T = TypeVar("T")

IDS = ("n0", "n1", "n2")
PEERS = tuple(Peer(id_, Address("10.0.0.1", 40_911 + number)) for number, id_ in enumerate(IDS))
STORE = StoreConfig(
    commit_log_segment_bytes=1 << 16,
    consume_queue_segment_bytes=2000,
    index_slots=100,
    index_entries=1000,
)


class Group:
    """Three brokers that elect their master. Each has its own disk; `disks` survive the brokers."""

    def __init__(self, loop: SimulatedLoop, seed: int, preferred: tuple[str, ...]) -> None:
        self.loop = loop
        self.preferred = preferred
        self.network = SimulatedNetwork(delay_s=0.001)
        self.disks = {id_: SimulatedDisk() for id_ in IDS}
        self.runtimes = {
            id_: simulated(loop, self.network, seed * 10 + number, self.disks[id_])
            for number, id_ in enumerate(IDS)
        }
        self.runtime = simulated(loop, self.network, seed * 10 + 9)
        self.events: list[Event] = []
        self.brokers: dict[str, Broker] = {}
        self.namesrv = NameServer(NameServerConfig(port=0), self.runtime)

    async def __aenter__(self) -> "Group":
        self.names = await self.namesrv.start()
        for id_ in IDS:
            await self.start(id_)
        self.session = Session([self.names], self.runtime)
        await self.session.start()
        self.producer = Producer(self.session, ProducerConfig("PG"))
        self.consumer = PullConsumer(self.session, "G")
        return self

    async def __aexit__(self, failure: type[BaseException] | None, *_: object) -> None:
        await self.session.stop()
        for id_ in list(self.brokers):
            await self.stop(id_)
        await self.namesrv.stop()
        if failure is None:
            await nothing_left(self.loop, *self.disks.values())

    def config(self, id_: str) -> BrokerConfig:
        return BrokerConfig(
            host="10.0.0.1",
            port=10_911 + 10 * IDS.index(id_),
            name_servers=(self.names,),
            store_directory="/store",
            store=STORE,
            membership=Membership(is_member=True, peers=PEERS, self_id=id_, preferred_leaders=self.preferred),
        )

    async def start(self, id_: str) -> Broker:
        runtime, config = self.runtimes[id_], self.config(id_)
        broker = Broker(config, runtime, EventLog(self.events.append, config.node, runtime.clock))
        await broker.start()
        self.brokers[id_] = broker
        return broker

    async def stop(self, id_: str) -> None:
        await self.brokers.pop(id_).stop()

    def kill(self, id_: str) -> None:
        """The process has ended, but its page cache still exists."""
        self.brokers.pop(id_).kill()
        self.disks[id_].crash_process()

    def masters(self) -> list[str]:
        """Return the members that would accept a message now."""
        services = {id_: broker.services for id_, broker in self.brokers.items()}
        return [id_ for id_, of in services.items() if of is not None and not of.is_slave]

    async def master(self) -> str:
        """Wait until there is a master."""
        async with asyncio.timeout(120):
            while not (masters := self.masters()):
                await asyncio.sleep(0.05)
        return masters[0]

    async def send(self, body: str, **properties: str) -> Sent:
        """Send a message repeatedly until it is answered SEND_OK."""
        async with asyncio.timeout(300):
            while True:
                outcome: Outcome = await self.producer.send(Message("T", body.encode(), dict(properties)))
                if isinstance(outcome, Sent) and outcome.status == "SEND_OK":
                    return outcome
                await asyncio.sleep(0.2)


def play(scenario: Callable[[Group], Awaitable[T]], seed: int = 0, preferred: tuple[str, ...] = ()) -> T:
    """Run a scenario in a new world."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with Group(loop, seed, preferred) as group:
            return await scenario(group)

    return run_simulated(main(), loop)
