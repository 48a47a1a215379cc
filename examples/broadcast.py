"""Deliver every message to every member of a group.

Use it for caches and configuration that each process keeps for itself. A broadcast consumer stores its
offsets in a local directory. With the same client id and directory it continues at its last offset.

    mqproof serve --store /tmp/example-store &
    python examples/broadcast.py
"""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack

from mqproof import Producer, PushConsumer, ReceivedMessage, Sent, connect, new_message
from mqproof.client import ConsumeFrom, Listener, MessageModel, PushConsumerConfig

TOPIC, GROUP = "example_prices", "example_prices_caches"
PRICES = {"tea": b"2.10", "coffee": b"2.90", "cake": b"3.50"}


def listener_for(cache: dict[str, bytes]) -> Listener:
    """Return a listener that keeps the last price of each product in the cache."""

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        for message in messages:
            cache[message.keys[0]] = message.body

    return listener


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)
        for product, price in PRICES.items():
            outcome = await producer.send(new_message(TOPIC, price, keys=[product]))
            if not isinstance(outcome, Sent):
                raise SystemExit(f"{product}: {outcome}")

    caches: dict[str, dict[str, bytes]] = {"cache-1": {}, "cache-2": {}}
    async with AsyncExitStack() as stack:
        offsets = stack.enter_context(tempfile.TemporaryDirectory())
        for name, cache in caches.items():
            session = await stack.enter_async_context(connect(namesrv, client_id=name))
            config = PushConsumerConfig(
                message_model=MessageModel.BROADCASTING,
                consume_from=ConsumeFrom.FIRST_OFFSET,
                offsets_directory=f"{offsets}/{name}",
            )
            consumer = PushConsumer(session, GROUP, listener_for(cache), config)
            await stack.enter_async_context(consumer)
            await consumer.subscribe(TOPIC)
        async with asyncio.timeout(30):
            while any(cache != PRICES for cache in caches.values()):
                await asyncio.sleep(0.05)
    for name, cache in caches.items():
        print(name, {product: price.decode() for product, price in sorted(cache.items())})


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
