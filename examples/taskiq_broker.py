"""Tasks in the background with taskiq: a message for each task, a group of workers, and redelivery.

A task that a worker did not finish is delivered again, so it can run twice. The label delay_s delays a task.

    pip install taskiq
    mqproof serve --store /tmp/example-store &
    python -m taskiq worker --app-dir examples taskiq_broker:broker &
    python examples/taskiq_broker.py
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from mqproof import Producer, PushConsumer, ReceivedMessage, connect, new_message
from mqproof.client import ConsumeFrom, ProducerConfig, PushConsumerConfig

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")


class RocketMQBroker(AsyncBroker):
    """A broker of taskiq. All workers of one `group` divide the tasks of the topic."""

    def __init__(
        self, name_servers: str, topic: str = "example_tasks", group: str = "example_workers"
    ) -> None:
        super().__init__()
        self._name_servers = name_servers
        self._topic = topic
        self._group = group

    async def startup(self) -> None:
        await super().startup()
        self._session = connect(self._name_servers)
        await self._session.start()
        self._producer = Producer(self._session, ProducerConfig(self._group + "_producer"))

    async def shutdown(self) -> None:
        await super().shutdown()
        await self._session.stop()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task. Raises SendError if the broker did not confirm it."""
        delay_s = message.labels.get("delay_s")
        delay = None if delay_s is None else float(delay_s)
        sent = new_message(self._topic, message.message, keys=message.task_id, delay=delay)
        await self._producer.send_or_raise(sent)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield the tasks of this worker. The offset of a task is committed when it is acknowledged."""
        arrived: asyncio.Queue[AckableMessage] = asyncio.Queue()

        async def listener(messages: Sequence[ReceivedMessage]) -> None:
            acknowledged = asyncio.Event()

            async def acknowledge() -> None:
                acknowledged.set()

            arrived.put_nowait(AckableMessage(data=messages[0].body, ack=acknowledge))
            await acknowledged.wait()

        config = PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)
        async with PushConsumer(self._session, self._group, listener, config) as consumer:
            await consumer.subscribe(self._topic)
            while True:
                yield await arrived.get()


broker = RocketMQBroker(NAMESRV)
served: list[str] = []
"""What this process has served."""


@broker.task
async def serve(drink: str) -> None:
    served.append(drink)
    print(f"served {drink}", flush=True)


async def main() -> None:
    await broker.startup()
    await serve.kiq("coffee")
    await serve.kicker().with_labels(delay_s=2).kiq("tea")
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
