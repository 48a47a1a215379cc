"""The application under test: it charges an account for each order that it consumes.

A group may receive an order again, so the application remembers what it has charged. `by_place` identifies
an order by the place of its message, which is the bug: a producer that sends again stores the same order at
another place. `by_number` identifies an order by its own number.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from mqproof import Producer, PushConsumer, ReceivedMessage, Sent, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig, Session

Identity = Callable[[ReceivedMessage], object]

FROM_START = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)


def by_place(order: ReceivedMessage) -> object:
    return order.queue, order.queue_offset


def by_number(order: ReceivedMessage) -> object:
    return order.keys[0]


class Payments:
    """Charges each order once, as far as `identity` can tell orders apart."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._charged: set[object] = set()
        self.received = 0
        self.charges: Counter[str] = Counter()
        """How often each order was charged, by its number."""

    async def listener(self, orders: Sequence[ReceivedMessage]) -> None:
        self.received += len(orders)
        for order in orders:
            if (identity := self._identity(order)) not in self._charged:
                self._charged.add(identity)
                self.charges[order.keys[0]] += 1

    @asynccontextmanager
    async def running(self, session: Session) -> AsyncIterator[None]:
        """Consume orders while the block runs."""
        async with PushConsumer(session, "payments", self.listener, FROM_START) as consumer:
            await consumer.subscribe("orders")
            yield


async def send_orders(session: Session, count: int) -> set[str]:
    """Send orders. Returns the numbers of those that are certainly stored."""
    producer, stored = Producer(session), set[str]()
    for number in map(str, range(count)):
        if isinstance(await producer.send(new_message("orders", b"tea", keys=[number])), Sent):
            stored.add(number)
    return stored
