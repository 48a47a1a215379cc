"""Members of consumer groups in the simulated world, and the messages that they received."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import Listener, MessageQueue, ReceivedMessage, RetryLater, Sent
from mqproof.impl.remoting.message import Message
from tests.impl.world import World

GROUP = "PG"


class Ear:
    """A listener that records the messages it receives, and returns the configured result."""

    def __init__(self) -> None:
        self.heard: list[ReceivedMessage] = []
        self.answer: RetryLater | None = None
        self.takes_s = 0.0
        self.busy: Counter[MessageQueue] = Counter()
        """Listeners that run, by queue."""
        self.busy_most = 0

    async def __call__(self, messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        self.heard += messages
        self.busy[messages[0].queue] += 1
        self.busy_most = max(self.busy_most, self.busy.total())
        await asyncio.sleep(self.takes_s)
        self.busy[messages[0].queue] -= 1
        return self.answer

    def bodies(self) -> list[bytes]:
        return [message.body for message in self.heard]


@asynccontextmanager
async def member(
    world: World,
    name: str,
    listener: Listener,
    config: PushConsumerConfig | None = None,
    topic: str = "T",
    tags: str | MessageSelector = "*",
) -> AsyncIterator[PushConsumer]:
    """Run a member with its own connection, subscribed, after it had time to find its queues."""
    async with Session([world.namesrv_address], world.runtime, f"127.0.0.1@{name}") as session:
        consumer = PushConsumer(session, GROUP, listener, config, world.event_log(name))
        async with consumer:
            await consumer.subscribe(topic, tags)
            await asyncio.sleep(2)
            yield consumer


async def make_topic(world: World) -> None:
    """Create topic T with four queues and no message."""
    assert world.broker is not None
    assert world.broker.services is not None
    await world.broker.services.topics.create_for_send("T", "TBW102", 4)
    await asyncio.sleep(0.1)


async def send(world: World, bodies: Sequence[bytes], tag: str | None = None) -> None:
    """Send messages to all queues of topic T in turn."""
    for body in bodies:
        outcome = await world.producer.send(Message("T", body, {"TAGS": tag} if tag else {}))
        assert isinstance(outcome, Sent)


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


async def committed(world: World, topic: str = "T") -> dict[int, int | None]:
    """Return the group's offsets by queue, as stored by the broker."""
    session = Session([world.namesrv_address], world.runtime)
    calls = GroupRequests(session, GROUP)
    try:
        return {queue.queue_id: await calls.committed(queue) for queue in await world.consumer.queues(topic)}
    finally:
        await session.stop()
