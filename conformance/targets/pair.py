"""A master and a slave of ours with their name server and a client, in one simulated world.

Each broker has its own disk. Processes are killed, machines lose their power, the wire between the two goes
dead; whatever happens follows from the seed.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from impl.broker.broker import Broker
from impl.broker.config import BrokerConfig
from impl.client.model import MessageQueue, NoRouteError, Unknown
from impl.client.producer import Producer, ProducerConfig
from impl.client.pull_consumer import PullConsumer
from impl.client.session import Session
from impl.event_log import EventLog
from impl.message import UNIQUE_KEY, WAIT, Message
from impl.namesrv.config import NameServerConfig
from impl.namesrv.server import NameServer
from impl.replication.config import ReplicationConfig, Role
from impl.runtime.network import Address, SimulatedNetwork
from impl.runtime.runtime import simulated
from impl.runtime.simulated_disk import SimulatedDisk
from impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from impl.store.config import FlushMode, StoreConfig
from impl.store.message_store import MessageStore
from impl.store.record import decode, peek
from spec.events import Event

MASTER: Final = "master"
SLAVE: Final = "slave"
TOPIC: Final = "T"
QUEUE: Final = MessageQueue(TOPIC, "broker-a", 0)

_NAMES: Final = Address("127.0.0.1", 9876)
_PORTS: Final = {MASTER: 10911, SLAVE: 10921}
_HA: Final = Address("127.0.0.1", 10912)

STORE: Final = StoreConfig(
    commit_log_segment_bytes=1 << 13,
    consume_queue_segment_bytes=20_000,
    index_slots=10,
    index_entries=1000,
)

T = TypeVar("T")


class Pair:
    """`async with` starts all of it. A node that is killed is started again by `start`."""

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: int = 0,
        *,
        flush: FlushMode = FlushMode.ASYNC_FLUSH,
        role: Role = Role.SYNC_MASTER,
        queues: int = 1,
        **replication: Any,
    ) -> None:
        self.network = SimulatedNetwork(delay_s=0.001)
        self.chance = random.Random(seed)
        self.disks = {MASTER: SimulatedDisk(), SLAVE: SimulatedDisk()}
        self.brokers: dict[str, Broker] = {}
        self.events: list[Event] = []
        self._loop = loop
        self._seed = seed
        common = BrokerConfig(
            name_servers=(_NAMES,),
            store_directory="/store",
            default_topic_queues=queues,
            store=replace(STORE, flush_mode=flush),
        )
        master = ReplicationConfig(role=role, **replication)
        slave = ReplicationConfig(role=Role.SLAVE, log_check=master.log_check)
        self.configs = {
            MASTER: replace(common, port=_PORTS[MASTER], replication=master),
            SLAVE: replace(common, port=_PORTS[SLAVE], replication=slave, broker_id=1),
        }
        self._namesrv = NameServer(NameServerConfig(port=_NAMES.port), self._runtime(SimulatedDisk()))

    async def __aenter__(self) -> "Pair":
        await self._namesrv.start()
        await self.start(MASTER)
        await self.start(SLAVE)
        self.session = Session([_NAMES], self._runtime(SimulatedDisk()))
        await self.session.start()
        self.producer = Producer(self.session, ProducerConfig("PG", retries=0))
        self.consumer = PullConsumer(self.session, "G")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.stop()
        for node in list(self.brokers):
            await self.stop(node)
        await self._namesrv.stop()

    # Nodes.

    @property
    def master(self) -> Broker:
        return self.brokers[MASTER]

    @property
    def slave(self) -> Broker:
        return self.brokers[SLAVE]

    async def start(self, node: str) -> None:
        config = self.configs[node]
        runtime = self._runtime(self.disks[node])
        told = sum(event.node == node for event in self.events)
        broker = Broker(config, runtime, EventLog(self.events.append, node, runtime.clock, told))
        await broker.start()
        self.brokers[node] = broker

    async def stop(self, node: str) -> None:
        """A clean exit."""
        await self.brokers.pop(node).stop()

    def kill(self, node: str) -> None:
        """SIGKILL: the page cache lives on."""
        self.brokers.pop(node).kill()
        self.disks[node].crash_process()

    def lose_power(self, node: str) -> None:
        """Of what was not synced any part may be left."""
        if node in self.brokers:
            self.brokers.pop(node).kill()
        self.disks[node].crash_os(self.chance)

    def lose_machine(self, node: str) -> None:
        """Its disk is gone, too."""
        if node in self.brokers:
            self.brokers.pop(node).kill()
        self.disks[node] = SimulatedDisk()

    def cut(self) -> None:
        """The wire between the two goes dead; neither end is told."""
        self.network.silence(_HA)

    def heal(self) -> None:
        self.network.heal(_HA)

    # What happens.

    async def until(self, condition: Callable[[], bool], seconds_max: float = 120.0) -> None:
        """Let time pass until something holds. Raises TimeoutError."""
        async with asyncio.timeout(seconds_max):
            while not condition():
                await asyncio.sleep(0.05)

    def follows(self) -> bool:
        """The slave is connected, its log agrees with the master's, and it lacks nothing."""
        if self.brokers.keys() != {MASTER, SLAVE}:
            return False
        client = self.slave.replicas.client
        same = self.slave.store.log_end == self.master.store.log_end
        return client is not None and client.is_following and same

    async def followed(self) -> None:
        """Wait until the slave follows."""
        await self.until(self.follows)

    async def send(self, name: str, *, wait: bool = True) -> str:
        """Send one message of that name; its status, or `unknown`, or what the refusal was."""
        properties = {UNIQUE_KEY: name} | ({} if wait else {WAIT: "false"})
        message = Message(TOPIC, name.encode().ljust(100, b"."), properties)
        try:
            outcome = await self.producer.send(message, timeout_ms=20_000)
        except NoRouteError:
            return "no route"
        return "unknown" if isinstance(outcome, Unknown) else outcome.status

    # What is seen.

    def log(self, node: str) -> list[str]:
        """The names of the messages in a running broker's log, in its order."""
        store = self.brokers[node].store
        assert isinstance(store, MessageStore), "no group's store"
        found, position = [], store.log_begin
        while position < store.log_end:
            size, _ = peek(store.log_read(position, 8))
            room = STORE.commit_log_segment_bytes - position % STORE.commit_log_segment_bytes
            if size == room:  # a filler
                position += room
                continue
            found.append(decode(store.log_read(position, size)).message_id)
            position += size
        return found

    def _runtime(self, disk: SimulatedDisk) -> Any:
        return simulated(self._loop, self.network, self._seed, disk)


def play(scene: Callable[[Pair], Awaitable[T]], seed: int = 0, **options: Any) -> T:
    """Run a scene with a pair of its own; the options are those of Pair."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with Pair(loop, seed, **options) as pair:
            return await scene(pair)

    return run_simulated(main(), loop)
