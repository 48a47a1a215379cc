"""Send a thousand small messages in few requests, and compare with one request for each message.

`send_batch` divides the messages into batches that the broker accepts. The result has one outcome for each
message. A listener that accepts batches receives up to `batch_max` messages in one call.

    mqproof serve --store /tmp/example-store &
    python examples/batch.py
"""

import asyncio
import os
import time
from collections.abc import Sequence

from mqproof import Message, Producer, PushConsumer, ReceivedMessage, Sent, connect, new_message
from mqproof.client import PushConsumerConfig

TOPIC, GROUP = "example_readings", "example_readings_readers"
COUNT = 1000


def readings() -> list[Message]:
    return [new_message(TOPIC, b"sensor %d" % number) for number in range(COUNT)]


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)

        started = time.monotonic()
        single = [await producer.send(message) for message in readings()]
        print(f"{COUNT} requests: {time.monotonic() - started:.2f} s")

        started = time.monotonic()
        batched = await producer.send_batch(readings())
        print(f"in batches: {time.monotonic() - started:.2f} s")

        missing = {outcome.message_id for outcome in single + batched if isinstance(outcome, Sent)}
        print(f"{len(missing)} of {2 * COUNT} messages are stored")
        calls = 0
        finished = asyncio.Event()

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            nonlocal calls
            calls += 1
            missing.difference_update(message.message_id for message in messages)
            if not missing:
                finished.set()

        async with PushConsumer(session, GROUP, listener, PushConsumerConfig(batch_max=32)) as consumer:
            await consumer.subscribe(TOPIC)
            async with asyncio.timeout(30):
                await finished.wait()
        print(f"consumed all of them in {calls} calls of the listener")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
