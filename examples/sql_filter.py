"""Receive only the messages whose properties meet a condition: an SQL92 expression that the broker evaluates.

The broker allows expressions only if its `enablePropertyFilter` is true. It is off by default:

    mqproof serve --store /tmp/example-store &
    mqproof admin updateBrokerConfig -n 127.0.0.1:9876 -c DefaultCluster -k enablePropertyFilter -v true
    python examples/sql_filter.py
"""

import asyncio
import os
from collections.abc import Sequence

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, MessageSelector, PushConsumerConfig, RefusalError

TOPIC, GROUP = "example_articles", "example_expensive_articles"
PRICES = {"tea": 2, "coffee": 3, "kettle": 40, "espresso machine": 900}
EXPENSIVE = MessageSelector.sql("price >= 40 AND (region = 'eu' OR region IS NULL)")


async def main(namesrv: str) -> None:
    received: list[str] = []
    complete = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> None:
        received.extend(f"{each.body.decode()} for {each.properties['price']}" for each in messages)
        if len(received) == 2:
            complete.set()

    config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with connect(namesrv) as session:
        producer = Producer(session)
        for name, price in PRICES.items():
            # Property values are texts. An expression converts them to numbers where it compares numbers.
            message = new_message(TOPIC, name.encode(), properties={"price": str(price)})
            await producer.send_or_raise(message)
        async with PushConsumer(session, GROUP, listener, config) as consumer:
            try:
                await consumer.subscribe(TOPIC, EXPENSIVE)
            except RefusalError as error:
                raise SystemExit(f"the broker does not allow expressions: {error}") from None
            async with asyncio.timeout(30):
                await complete.wait()
    print("received", " and ".join(sorted(received)))


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
