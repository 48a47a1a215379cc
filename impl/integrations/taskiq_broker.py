"""A broker of taskiq: a message for each task, and a group of workers that divide them.

    broker = TaskiqBroker("127.0.0.1:9876")

A task that a worker did not finish is delivered again, so it can run twice. The label `delay_s` delays a task
by that many seconds.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.consuming.start_offset import ConsumeFrom
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.integrations.cluster_site import ClusterSite, ensure_topic
from mqproof.impl.remoting.signing import Credentials


class TaskiqBroker(AsyncBroker):
    """All workers of one `group` divide the tasks of the topic."""

    def __init__(
        self,
        name_servers: str = "127.0.0.1:9876",
        *,
        topic: str = "taskiq",
        group: str = "taskiq_workers",
        tls: str | None = None,
        credentials: Credentials | None = None,
        create_topic: bool = True,
        queues: int = 8,
        consumer: PushConsumerConfig | None = None,
    ) -> None:
        """Create a broker. `name_servers`, `tls` and `credentials` are as in `connect`.

        A missing topic is created with `queues` queues, which requires the rights of an administrator, unless
        `create_topic` is false. `consumer` is by default one that begins at the first message.
        """
        super().__init__()
        self._site = ClusterSite(name_servers, tls, credentials)
        self._topic, self._group = topic, group
        self._creates, self._queues = create_topic, queues
        self._config = consumer or PushConsumerConfig(consume_from=ConsumeFrom.FIRST_OFFSET)

    async def startup(self) -> None:
        await super().startup()
        site = self._site
        if self._creates:
            await site.administer(lambda admin: ensure_topic(admin, self._topic, self._queues))
        self._session = connect(site.name_servers, tls=site.tls, credentials=site.credentials)
        await self._session.start()
        self._producer = Producer(self._session, ProducerConfig(f"{self._group}_producer"))

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

        async with PushConsumer(self._session, self._group, listener, self._config) as consumer:
            await consumer.subscribe(self._topic)
            while True:
                yield await arrived.get()
