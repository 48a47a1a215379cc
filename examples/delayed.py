"""Send a message now that consumers receive later.

A delay level is a number from 1 to 18; the broker's messageDelayLevel gives the delay of each. By default,
level 1 is one second, level 3 is ten seconds and level 18 is two hours.

    mqproof serve --store /tmp/example-store &
    python examples/delayed.py
"""

import asyncio
import os
import time

from mqproof import LitePullConsumer, Producer, Sent, connect, new_message

TOPIC, GROUP = "example_reminders", "example_reminders_readers"


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)
        started = time.monotonic()
        waiting = set()
        for text, level in (("in one second", 1), ("now", 0)):
            outcome = await producer.send(new_message(TOPIC, text.encode(), delay_level=level))
            if not isinstance(outcome, Sent):
                raise SystemExit(f"{text}: {outcome}")
            waiting.add(outcome.message_id)
        async with LitePullConsumer(session, GROUP) as consumer:
            await consumer.subscribe(TOPIC)
            while waiting and time.monotonic() < started + 30:
                for message in await consumer.poll(timeout_ms=1000):
                    seconds = time.monotonic() - started
                    print(f"{message.body.decode()!r} arrived {seconds:.1f} s after it was sent")
                    waiting.discard(message.message_id)
    if waiting:
        raise SystemExit(f"{len(waiting)} messages did not arrive")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
