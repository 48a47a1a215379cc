"""Keep the steps of each order in sequence.

The producer sends all messages of one order to one queue, one after the other. The orderly consumer reads
each queue in sequence. A message that fails stops its queue. Messages of different orders may overtake each
other.

    mqproof serve --store /tmp/example-store &
    python examples/ordered.py
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence

from mqproof import Producer, PushConsumer, ReceivedMessage, RetryLater, Sent, connect, new_message
from mqproof.client import ConsumeFrom, PushConsumerConfig, by_hash

TOPIC, GROUP = "example_steps", "example_steps_readers"
STEPS = ("created", "paid", "packed", "shipped")
ORDERS = ("order-1", "order-2", "order-3")


async def main(namesrv: str) -> None:
    seen: dict[str, list[str]] = defaultdict(list)
    failures = 0
    finished = asyncio.Event()

    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        nonlocal failures
        for message in messages:
            order, step = message.keys[0], message.body.decode()
            if step == "packed" and failures == 0:
                failures += 1
                return RetryLater(pause_ms=100)  # the queue waits, then delivers this message again
            seen[order].append(step)
        if sum(map(len, seen.values())) >= len(STEPS) * len(ORDERS):
            finished.set()
        return None

    async with connect(namesrv) as session:
        producer = Producer(session)
        for step in STEPS:
            for order in ORDERS:
                message = new_message(TOPIC, step.encode(), keys=[order])
                outcome = await producer.send(message, select=by_hash(order))
                if not isinstance(outcome, Sent):
                    raise SystemExit(f"{order} {step}: {outcome}")
        config = PushConsumerConfig(orderly=True, consume_from=ConsumeFrom.FIRST_OFFSET)
        async with PushConsumer(session, GROUP, listener, config) as consumer:
            await consumer.subscribe(TOPIC)
            async with asyncio.timeout(30):
                await finished.wait()
    for order in ORDERS:
        print(f"{order}: {' '.join(seen[order])}")
    print(f"{failures} message failed once and was delivered again")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
