"""Poll for messages, and commit only after the work on them is done.

The program decides when it is ready for more. With `auto_commit=False` a poll does not store offsets: if the
program ends before `commit`, the group receives these messages again. The first part of this program ends in
that way.

    mqproof serve --store /tmp/example-store &
    python examples/lite_pull.py
"""

import asyncio
import os

from mqproof import LitePullConsumer, Producer, Sent, connect, new_message
from mqproof.client import LitePullConfig

TOPIC, GROUP = "example_invoices", "example_invoices_printers"


async def work(namesrv: str, expected: int, *, fails: bool) -> int:
    """Return the number of messages that were processed. With `fails`, stop after the first of them."""
    count = 0
    config = LitePullConfig(auto_commit=False)
    async with connect(namesrv) as session, LitePullConsumer(session, GROUP, config) as consumer:
        await consumer.subscribe(TOPIC)
        while count < expected:
            count += len(await consumer.poll(timeout_ms=5000, max_count=4))
            if fails and count:
                raise RuntimeError(f"failed after {count} messages")
            await consumer.commit()
        for queue in consumer.assignment():
            print(f"{queue}: committed offset {await consumer.committed(queue)}")
    return count


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)
        outcomes = [await producer.send(new_message(TOPIC, b"invoice %d" % n)) for n in range(20)]
    stored = sum(isinstance(outcome, Sent) for outcome in outcomes)
    print(f"sent {stored} messages")
    try:
        await work(namesrv, stored, fails=True)
    except RuntimeError as error:
        print(f"the first run {error}")
    print(f"the second run processed {await work(namesrv, stored, fails=False)} messages")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
