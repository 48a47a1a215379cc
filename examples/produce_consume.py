"""Send ten messages and consume them with a listener.

Shows the three outcomes of a send, and a push consumer that calls a function for each message.

    mqproof serve --store /tmp/example-store &
    python examples/produce_consume.py

NAMESRV_ADDR names another name server than 127.0.0.1:9876.
"""

import asyncio
import os
from collections.abc import Sequence

from mqproof import Producer, PushConsumer, ReceivedMessage, Refused, Sent, Unknown, connect, new_message

TOPIC, GROUP = "example_hello", "example_hello_readers"


async def send_ten(producer: Producer) -> set[str]:
    """Return the ids of the messages that are stored."""
    stored = set()
    for number in range(10):
        message = new_message(TOPIC, f"hello {number}".encode(), tag="greeting", keys=[f"hello-{number}"])
        match await producer.send(message):
            case Sent(message_id=message_id, queue=queue, queue_offset=offset):
                print(f"stored in {queue} at offset {offset}")
                stored.add(message_id)
            case Refused(status=status, remark=remark):
                print(f"not stored: {status}, {remark}")
            case Unknown(remark=remark):  # no answer; sending again may store the message twice
                print(f"it is unknown whether the message is stored: {remark}")
    return stored


async def main(namesrv: str) -> None:
    async with connect(namesrv) as session:
        missing = await send_ten(Producer(session))
        finished = asyncio.Event()

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            for message in messages:
                print(f"consumed {message.body.decode()!r}, tag {message.tag}, keys {message.keys}")
                missing.discard(message.message_id)
            if not missing:
                finished.set()

        async with PushConsumer(session, GROUP, listener) as consumer:
            await consumer.subscribe(TOPIC, "greeting")
            async with asyncio.timeout(30):
                await finished.wait()
    print("all messages are consumed")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
