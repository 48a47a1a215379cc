"""Let several producers write at once, then make a group read the last part again.

Each message has a key; `mqproof admin queryMsgByKey -t example_visits -k visit-0-3` finds it later. The group
goes back to a point in time with `search_offset` and a commit that resets. Do this while the group has no
running member: a member keeps its own position and would overwrite the reset.

    mqproof serve --store /tmp/example-store &
    python examples/replay.py
"""

import asyncio
import os
import time

from mqproof import LitePullConsumer, Producer, PullConsumer, Sent, connect, new_message

TOPIC, GROUP = "example_visits", "example_visits_reports"
PRODUCERS, EACH = 3, 5


async def produce(namesrv: str, number: int, round_name: str) -> None:
    async with connect(namesrv, client_id=f"producer-{number}") as session:
        producer = Producer(session)
        for visit in range(EACH):
            message = new_message(TOPIC, round_name.encode(), keys=[f"visit-{number}-{visit}"])
            outcome = await producer.send(message)
            if not isinstance(outcome, Sent):
                raise SystemExit(f"visit-{number}-{visit}: {outcome}")


async def read(namesrv: str, count: int) -> list[str]:
    """Return so many messages that the group has not consumed, and wait at most 30 seconds for them."""
    found: list[str] = []
    async with (
        asyncio.timeout(30),
        connect(namesrv) as session,
        LitePullConsumer(session, GROUP) as consumer,
    ):
        await consumer.subscribe(TOPIC)
        while len(found) < count:
            messages = await consumer.poll(timeout_ms=1000)
            found += [f"{message.body.decode()} {message.keys[0]}" for message in messages]
    return found


async def go_back_to(namesrv: str, timestamp_ms: int) -> None:
    async with connect(namesrv) as session:
        consumer = PullConsumer(session, GROUP)
        for queue in await consumer.queues(TOPIC):
            await consumer.commit(queue, await consumer.search_offset(queue, timestamp_ms), reset=True)


async def main(namesrv: str) -> None:
    await asyncio.gather(*(produce(namesrv, number, "first") for number in range(PRODUCERS)))
    await asyncio.sleep(0.05)
    between = time.time_ns() // 1_000_000
    await asyncio.gather(*(produce(namesrv, number, "second") for number in range(PRODUCERS)))

    print(f"the group read {len(await read(namesrv, 2 * PRODUCERS * EACH))} messages")
    await go_back_to(namesrv, between)
    again = await read(namesrv, PRODUCERS * EACH)
    print(f"after the reset it read {len(again)} again: {', '.join(sorted(again)[:2])}, ...")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
