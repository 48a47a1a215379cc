"""Retry a message that fails, and read it from the dead letter queue in the end.

A message that the listener does not consume is delivered again after a delay. After `reconsume_max`
redeliveries the broker moves it to the topic %DLQ%GROUP, where an operator or another program can read it.

    mqproof serve --store /tmp/example-store &
    python examples/dead_letters.py
"""

import asyncio
import os
from collections.abc import Sequence

from mqproof import (
    LitePullConsumer,
    Producer,
    PushConsumer,
    ReceivedMessage,
    RetryLater,
    Sent,
    connect,
    new_message,
)
from mqproof.client import ConsumeFrom, LitePullConfig, NoRouteError, PushConsumerConfig

TOPIC, GROUP = "example_payments", "example_payments_workers"
DEAD_LETTERS = f"%DLQ%{GROUP}"


async def main(namesrv: str) -> None:
    async def listener(messages: Sequence[ReceivedMessage]) -> RetryLater | None:
        for message in messages:
            amount = message.body.decode()
            print(f"delivery {message.reconsume_times + 1} of {amount!r}")
            if not amount.isdigit():
                return RetryLater(delay_level=1)  # again in one second; 0 waits longer each time
        return None

    async with connect(namesrv) as session:
        producer = Producer(session)
        outcomes = [await producer.send(new_message(TOPIC, body)) for body in (b"120", b"twelve")]
        if not all(isinstance(outcome, Sent) for outcome in outcomes):
            raise SystemExit(f"not stored: {outcomes}")
        config = PushConsumerConfig(reconsume_max=2)
        async with PushConsumer(session, GROUP, listener, config) as consumer:
            await consumer.subscribe(TOPIC)
            await show_dead_letter(namesrv, outcomes[1].message_id)


async def show_dead_letter(namesrv: str, message_id: str) -> None:
    """Wait until the message is in the dead letter queue."""
    config = LitePullConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
    async with (
        asyncio.timeout(60),
        connect(namesrv) as session,
        LitePullConsumer(session, "example_operators", config) as consumer,
    ):
        await wait_until_it_exists(consumer)
        await consumer.subscribe(DEAD_LETTERS)
        while True:
            for message in await consumer.poll(timeout_ms=1000):
                print(f"dead letter {message.body.decode()!r} of topic {message.topic}")
                if message.message_id == message_id:
                    return


async def wait_until_it_exists(consumer: LitePullConsumer) -> None:
    """The broker creates the topic with the first dead letter of the group."""
    while True:
        try:
            await consumer.queues(DEAD_LETTERS)
            return
        except NoRouteError:
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
