"""The messages in the store of a broker inside a test, and the wait for them."""

import asyncio
from collections.abc import Callable
from typing import Final

from mqproof.impl.broker.broker import Broker
from mqproof.impl.client.model import MessageQueue, ReceivedMessage
from mqproof.impl.store.files import record
from mqproof.impl.store.results import GetStatus

_POLL_S: Final = 0.002


class ExpectationError(AssertionError):
    """A topic did not get the expected messages in time."""


def stored_messages(broker: Broker, topic: str) -> list[ReceivedMessage]:
    """Return all messages of the topic by queue and offset; empty for an unknown topic."""
    count = broker.store.topics().get(topic, 0)
    return [message for queue_id in range(count) for message in _of_queue(broker, topic, queue_id)]


async def expect_messages(
    messages: Callable[[str], list[ReceivedMessage]], topic: str, count: int, within_s: float
) -> list[ReceivedMessage]:
    """Wait until `messages` returns `count` messages of the topic, and return them.

    Raises:
        ExpectationError: it returns more, or after `within_s` seconds it returns fewer.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while len(found := messages(topic)) < count and loop.time() < until:
        await asyncio.sleep(_POLL_S)
    if len(found) != count:
        bodies = "".join(f"\n  {message.body[:40]!r}" for message in found[:10])
        raise ExpectationError(f"topic {topic}: messages expected: {count}, found: {len(found)}{bodies}")
    return found


def _of_queue(broker: Broker, topic: str, queue_id: int) -> list[ReceivedMessage]:
    store, found = broker.store, list[ReceivedMessage]()
    name = broker.services.config.name if broker.services else ""
    queue = MessageQueue(topic, name, queue_id)
    offset = store.min_offset(topic, queue_id)
    while (read := store.get(topic, queue_id, offset)).status is GetStatus.FOUND:
        for data in read.records:
            stored = record.decode(data)
            times = stored.message.reconsume_times
            found.append(ReceivedMessage(stored, queue, times, read.min_offset, read.max_offset))
        offset = read.next_offset
    return found
