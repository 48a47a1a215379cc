"""A cluster of our master and slave with a client, with short methods for scenarios."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, Self, TypeVar

from mqproof.conformance.adapters.simulated_loops import failures_reported
from mqproof.conformance.hosts.simulated import MASTER, SLAVE, STORE, Cluster, Setup
from mqproof.conformance.subjects.released_consumer import ReleasedCommits
from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.model import MessageQueue, NoRouteError, Unknown
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.message import UNIQUE_KEY, WAIT, Message
from mqproof.impl.replication.config import ReplicationConfig, Role
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode

TOPIC: Final = "T"
_STORE: Final = replace(STORE, file_reserved_ms=30_000)
"""Segments of the log expire before the end of a run, if they are deleted by hand."""
QUEUE: Final = MessageQueue(TOPIC, "broker-a", 0)

T = TypeVar("T")


class Pair(Cluster):
    """A master and a slave with a client; `async with` starts all of them.

    A node that was killed is restarted by `start`.
    """

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
        super().__init__(
            loop, seed, Setup(flush, ReplicationConfig(role, **replication), queues=queues, store=_STORE)
        )

    async def __aenter__(self) -> Self:
        await self.start_all()
        self.client = self.session("client")
        await self.client.start()
        self.producer = Producer(self.client, ProducerConfig("PG", retries=0))
        self.consumer = PullConsumer(self.client, "G")
        self.released = ReleasedCommits(self.client, "G")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.stop()
        for node in list(self.brokers):
            await self.stop(node)

    @property
    def slave(self) -> Broker:
        return self.brokers[SLAVE]

    def cut(self) -> None:
        """Cut the link between the two brokers for existing connections, without notifying either end."""
        there, back = self.links(MASTER, SLAVE)
        self.internet.forget_connections(*there)
        self.internet.cut((there, back))

    def heal(self) -> None:
        self.internet.heal(self.links(MASTER, SLAVE))

    async def followed(self) -> None:
        """Wait until the slave follows and has every record."""
        has_followed = await self.until(self.has_caught_up)
        assert has_followed, "the slave did not follow"

    async def send(self, name: str, *, wait: bool = True) -> str:
        """Send one message with that name; return its status, `unknown`, or the refusal."""
        properties = {UNIQUE_KEY: name} | ({} if wait else {WAIT: "false"})
        message = Message(TOPIC, name.encode().ljust(100, b"."), properties)
        try:
            outcome = await self.producer.send(message, timeout_ms=20_000)
        except NoRouteError:
            return "no route"
        return "unknown" if isinstance(outcome, Unknown) else outcome.status

    def names_in(self, node: str) -> list[str]:
        """Return the names of the messages in a running broker's log, in order."""
        return [stored.message_id for stored in self.log(node)]


def play(scenario: Callable[[Pair], Awaitable[T]], seed: int = 0, **options: Any) -> T:
    """Run a scenario with its own pair; the options are those of Pair."""
    loop = SimulatedLoop()

    async def main() -> T:
        async with Pair(loop, seed, **options) as pair:
            return await scenario(pair)

    with failures_reported():
        return run_simulated(main(), loop)
