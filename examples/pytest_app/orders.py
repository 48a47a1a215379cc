"""The application under test: it reads orders, and sends an invoice for each."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mqproof import Producer, PushConsumer, ReceivedMessage, RetryLater, Sent, connect, new_message

PRICES = {"tea": 2, "coffee": 3}


@asynccontextmanager
async def running(namesrv: str) -> AsyncIterator[None]:
    """Run the application while the block runs."""
    async with connect(namesrv) as session:
        producer = Producer(session)

        async def invoice(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
            for order in messages:
                item, count = order.body.decode().split()
                total = PRICES[item] * int(count)
                outcome = await producer.send(new_message("invoices", b"%d" % total, keys=order.keys))
                if not isinstance(outcome, Sent):
                    return RetryLater()
            return None

        async with PushConsumer(session, "invoicing", invoice) as consumer:
            await consumer.subscribe("orders")
            yield
