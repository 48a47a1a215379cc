"""Clients in another thread keep up when the time of their broker is advanced, and theirs does not pass."""

import asyncio
from collections.abc import Sequence

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.impl.embedded.threaded_broker import ThreadedBroker


def test_a_client_in_another_thread_makes_every_attempt_of_the_retries() -> None:
    attempts: list[int] = []
    begun = asyncio.Event()

    async def fail(messages: Sequence[ReceivedMessage]) -> None:
        attempts.append(messages[0].reconsume_times)
        begun.set()
        raise ValueError("no coffee left")

    async def run(rocketmq: ThreadedBroker) -> None:
        async with connect(rocketmq.name_server) as session:
            await Producer(session).send_or_raise(new_message("Orders", b"x"))
            async with PushConsumer(session, "Bar", fail) as consumer:
                await consumer.subscribe("Orders")
                await begun.wait()
                await asyncio.to_thread(rocketmq.clock.advance, hours=5)
                await asyncio.to_thread(rocketmq.expect, "%DLQ%Bar")

    with ThreadedBroker() as rocketmq:
        asyncio.run(run(rocketmq))
    assert attempts == list(range(17))
