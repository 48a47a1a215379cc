"""Ask a service through the broker, and wait for its reply.

The service is a push consumer that replies to each question. It does not reply to "silence", so that this
request ends at its time limit. Both sides may be on different machines, and either may be Apache's client.

    mqproof serve --store /tmp/example-store &
    python examples/request_reply.py
"""

import asyncio
import os
from collections.abc import Sequence

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, NoReplyError, PushConsumerConfig, ReplyError

TOPIC, GROUP = "example_questions", "example_service"


async def serve(namesrv: str, stopping: asyncio.Event) -> None:
    """Reply to each question with its text in capitals."""
    async with connect(namesrv) as session:
        producer = Producer(session)

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                if message.body != b"silence":
                    try:
                        await producer.reply(message, message.body.upper())
                    except ReplyError as error:
                        print("the requester did not get the reply:", error)

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        consumer = PushConsumer(session, GROUP, listener, config)
        await consumer.subscribe(TOPIC)
        await consumer.start()
        await stopping.wait()
        await consumer.stop()


async def ask(namesrv: str) -> None:
    async with connect(namesrv) as session:
        producer = Producer(session)
        for question in (b"hello", b"how are you"):
            reply = await producer.request(new_message(TOPIC, question), timeout_ms=30_000)
            print(f"{question.decode()}? {reply.body.decode()}")
        try:
            await producer.request(new_message(TOPIC, b"silence"), timeout_ms=500)
        except NoReplyError as error:
            print("silence?", str(error).partition(";")[0])


async def main(namesrv: str) -> None:
    stopping = asyncio.Event()
    service = asyncio.create_task(serve(namesrv, stopping))
    try:
        await ask(namesrv)
    finally:
        stopping.set()
        await service


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
