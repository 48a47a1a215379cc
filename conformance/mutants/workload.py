"""Defects of broker and client that show in the observations of many clients.

Each is detected in the history of a workload, by a rule of the invariant that it breaks.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from mqproof.conformance.mutants.consumers import nothing_is_no_share
from mqproof.conformance.mutants.mutant import Mutant, by_name
from mqproof.impl.broker.requests.checks import scheduled_or_refused
from mqproof.impl.client.connection.routes import subscribe_queues
from mqproof.impl.client.consuming import group_requests
from mqproof.impl.client.consuming.concurrent import ConcurrentConsumption
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.consuming.orderly import OrderlyConsumption
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RetryLater
from mqproof.impl.remoting.message import Message, StoredMessage

_receive = ConcurrentConsumption.receive
_receive_orderly = OrderlyConsumption.receive
_filter = group_requests._filter
_advance = Offsets.advance
_DROPPED: Final = 7


def _consume_twice(
    consumption: ConcurrentConsumption, held: ProcessQueue, messages: Sequence[ReceivedMessage]
) -> None:
    for _ in range(2):
        _receive(consumption, held, messages)


def _forget_some(
    consumption: ConcurrentConsumption, held: ProcessQueue, messages: Sequence[ReceivedMessage]
) -> None:
    _receive(consumption, held, [each for each in messages if each.queue_offset % _DROPPED])


def _another_lane(
    consumption: OrderlyConsumption, held: ProcessQueue, messages: Sequence[ReceivedMessage]
) -> None:
    _receive_orderly(consumption, held, messages)
    lane = consumption._lanes[held]
    asyncio.get_running_loop().create_task(consumption._run(held, lane))


async def _finished_without_a_copy(
    consumption: ConcurrentConsumption, held: ProcessQueue, failed: list[ReceivedMessage], answer: RetryLater
) -> None:
    """Treats failed messages as finished, also those that the broker did not take back."""
    for message in failed:
        if consumption._redelivery is not None:
            await consumption._redelivery.send_back(message, answer.delay_level)
        consumption._done(held, [message])


def _to_the_end(held: ProcessQueue, messages: Collection[ReceivedMessage]) -> None:
    """Puts failed messages behind the others."""
    for message in messages:
        del held._messages[message.queue_offset]
        held._messages[message.queue_offset] = message


def _one_too_many(offsets: Offsets, queue: MessageQueue, offset: int) -> None:
    _advance(offsets, queue, offset + 1)


async def _everything(rebalancer: Any, topic: str) -> set[MessageQueue]:
    route = await rebalancer._session.routes.get(topic)
    if route is None:
        raise ClientError(f"{topic} has no route")
    return set(subscribe_queues(topic, route))


def _some_of_the_wanted(selector: MessageSelector) -> Callable[[StoredMessage], bool]:
    is_wanted = _filter(selector)
    if selector.expression == "*":
        return is_wanted
    return lambda stored: bool(is_wanted(stored) and stored.queue_offset % _DROPPED)


def _never_given_up(*_: object) -> bool:
    return False


def _at_once(services: Any, message: Message) -> Message:
    scheduled_or_refused(services, message)
    return message


MUTANTS: Final = by_name(
    Mutant(
        "consumed-twice", "a listener is called twice for each message", "DELIV-3",
        "mqproof.impl.client.consuming.concurrent:ConcurrentConsumption.receive", _consume_twice,
    ),
    Mutant(
        "one-too-many-committed", "a push consumer commits one message more than it consumed", "DELIV-1",
        "mqproof.impl.client.consuming.offset_store:Offsets.advance", _one_too_many,
    ),
    Mutant(
        "everybody-owns-everything", "a rebalance assigns all queues to each member", "DELIV-6",
        "mqproof.impl.client.consuming.rebalance:Rebalancer._queues_of_member", _everything,
    ),
    Mutant(
        "never-given-up", "no message is redelivered often enough to become a dead letter", "DELIV-7",
        "mqproof.impl.broker.processors.retries:is_given_up", _never_given_up,
    ),
    Mutant(
        "delays-ignored", "a delayed message is stored where it is readable at once", "DELIV-8",
        "mqproof.impl.broker.processors.send:scheduled_or_refused", _at_once,
    ),
    Mutant(
        "wanted-messages-dropped", "a subscription by tags omits some of its messages", "DELIV-10",
        "mqproof.impl.client.consuming.group_requests:_filter", _some_of_the_wanted,
    ),
    Mutant(
        "cached-messages-dropped", "some messages that a consumer pulled never reach its listener",
        "DELIV-11",
        "mqproof.impl.client.consuming.concurrent:ConcurrentConsumption.receive", _forget_some,
    ),
    Mutant(
        "two-lanes", "an orderly queue is consumed by several listener calls at the same time",
        "DELIV-13",
        "mqproof.impl.client.consuming.orderly:OrderlyConsumption.receive", _another_lane,
    ),
    Mutant(
        "empty-retry-share-kept", "a member that should have no retry queue keeps its own", "DELIV-6",
        "mqproof.impl.client.consuming.rebalance:Rebalancer._queues_of_member", nothing_is_no_share,
    ),
    Mutant(
        "finished-without-a-copy", "a failed message that no broker took back is committed", "DELIV-7",
        "mqproof.impl.client.consuming.concurrent:ConcurrentConsumption._again", _finished_without_a_copy,
    ),
    Mutant(
        "failed-batch-to-the-end", "an orderly batch that failed waits behind the other messages",
        "DELIV-4",
        "mqproof.impl.client.consuming.process_queue:ProcessQueue.replace", _to_the_end,
    ),
)  # fmt: skip
"""The mutants by name."""
