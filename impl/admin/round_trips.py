"""How long single sends take: messages that are sent one after the other, each measured."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.impl.admin.admin import Admin
from mqproof.impl.client.connection.routes import publish_queues
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageQueue, Outcome, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig

_GROUP: Final = "mqproof_round_trips"


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One send."""

    queue: MessageQueue
    outcome: Outcome
    spent_ms: float
    """The time until the response, or until the attempt failed."""


async def of_topic(admin: Admin, topic: str, count: int, size_bytes: int) -> AsyncIterator[RoundTrip]:
    """Send messages to the queues of a topic in turn. Raises NoRouteError, or ClientError without a queue."""
    queues = publish_queues(topic, await admin.route(topic))
    if not queues:
        raise ClientError(f"topic {topic} has no writable queue")
    async for each in _sent(admin, queues, count, size_bytes):
        yield each


async def of_broker(admin: Admin, broker_name: str, count: int, size_bytes: int) -> AsyncIterator[RoundTrip]:
    """Send messages to a broker, in its topic of its own name. Raises as `of_topic`."""
    async for each in of_topic(admin, broker_name, count, size_bytes):
        yield each


def average_ms(found: Sequence[RoundTrip]) -> float | None:
    """Return the average time of the sends that succeeded, or None if there is none.

    The first send is left out, because it opens the connection, unless it is the only one.
    """
    times = [each.spent_ms for each in found[1:] or found if isinstance(each.outcome, Sent)]
    return sum(times) / len(times) if times else None


async def _sent(
    admin: Admin, queues: Sequence[MessageQueue], count: int, size_bytes: int
) -> AsyncIterator[RoundTrip]:
    producer = Producer(admin.session, ProducerConfig(_GROUP))
    loop = asyncio.get_running_loop()
    for number in range(count):
        queue = queues[number % len(queues)]
        message = new_message(queue.topic, b"a" * size_bytes)
        begun_s = loop.time()
        outcome = await producer.send(message, queue)
        yield RoundTrip(queue, outcome, 1000 * (loop.time() - begun_s))
