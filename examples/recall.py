"""Send messages for a time, to the millisecond, and recall one of them before it is due.

The handle of a waiting message is a text. A program that keeps it can recall the message later, from another
process.

    mqproof serve --store /tmp/example-store &
    python examples/recall.py
"""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta

from mqproof import LitePullConsumer, Producer, connect, new_message

TOPIC, GROUP = "example_timers", "example_timers_readers"


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)
        at = datetime.now(UTC) + timedelta(seconds=1)
        await producer.send_or_raise(new_message(TOPIC, b"at a time", deliver_at=at))
        await producer.send_or_raise(new_message(TOPIC, b"after 1.5 s", delay=1.5))
        recalled = await producer.send_or_raise(new_message(TOPIC, b"recalled", delay=1.2))
        if recalled.recall_handle is None:
            raise SystemExit("the broker does not know this kind of delay")
        await producer.recall(TOPIC, recalled.recall_handle)
        end_s, arrived = time.monotonic() + 30, 0
        async with LitePullConsumer(session, GROUP) as consumer:
            await consumer.subscribe(TOPIC)
            while arrived < 2 and time.monotonic() < end_s:
                for message in await consumer.poll(timeout_ms=1000):
                    print(f"{message.body.decode()!r} arrived")
                    arrived += 1
    if arrived < 2:
        raise SystemExit("a message did not arrive")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
