"""A broker, its clients and their event logs, in one event loop, and the diagnosis of what happened there."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

from mqproof.client import (
    ConsumeFrom,
    LitePullConfig,
    LitePullConsumer,
    MessageModel,
    MessageSelector,
    Producer,
    ProducerConfig,
    PullLimits,
    PushConsumer,
    PushConsumerConfig,
    ReceivedMessage,
    RetryLater,
    Sent,
    Session,
    Strategy,
    averagely,
    new_message,
)
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.topics import update_topic
from mqproof.impl.broker.broker import Broker
from mqproof.impl.diagnosis.evidence import Answer
from mqproof.impl.diagnosis.question import Question, answers
from mqproof.impl.embedded import embedded_broker
from mqproof.impl.embedded.embedded_broker import EmbeddedBroker
from mqproof.impl.embedded.virtual_time import of_loop
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.testing import VirtualTime

TOPIC, GROUP = "Orders", "billing"

Listener = Callable[[Sequence[ReceivedMessage]], Awaitable[RetryLater | None] | RetryLater | None]


async def accept(messages: Sequence[ReceivedMessage]) -> None:
    """Consume the messages."""


async def fail(messages: Sequence[ReceivedMessage]) -> None:
    raise ValueError("the listener fails on purpose")


class Scene:
    """One broker. `logs` is where the broker and the clients write, each into a file of its own."""

    def __init__(self, folder: Path, properties: dict[str, str] | None = None) -> None:
        self.logs = folder
        self.broker = EmbeddedBroker(properties=properties)
        self._stack = AsyncExitStack()
        self._nodes = 0
        self._end = asyncio.Event()

    async def __aenter__(self) -> "Scene":
        clock = of_loop(asyncio.get_running_loop())
        events = EventLog.to_file(str(self.logs / "broker-a.ndjson"), "broker-a", clock)
        with patch.object(embedded_broker, "Broker", partial(Broker, events=events)):
            await self._stack.enter_async_context(self.broker)
        self.admin = Admin([Address.parse(self.broker.name_server)], self.broker._runtime)  # type: ignore[arg-type]
        await self._stack.enter_async_context(self.admin)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._end.set()
        await self._stack.aclose()

    async def hang(self, _: Sequence[ReceivedMessage]) -> None:
        """A listener that returns when the scene ends."""
        await self._end.wait()

    @property
    def clock(self) -> VirtualTime:
        return self.broker.clock

    def events(self, name: str) -> EventLog:
        self._nodes += 1
        path = self.logs / f"{name}-{self._nodes}.ndjson"
        return EventLog.to_file(str(path), path.stem, self.clock)

    async def session(self, client_id: str | None = None) -> Session:
        return await self._stack.enter_async_context(self.broker.client(client_id))

    async def create(self, topic: str = TOPIC, queues: int = 1, perm: int = 6) -> None:
        masters = await self.admin.masters("DefaultCluster")
        await update_topic(
            self.admin,
            masters,
            TopicConfig(topic, read_queue_nums=queues, write_queue_nums=queues, perm=perm),
        )

    async def producer(self, retries: int = 0) -> Producer:
        return Producer(await self.session(), ProducerConfig(retries=retries), self.events("producer"))

    async def send(
        self,
        producer: Producer,
        count: int = 1,
        *,
        tag: str | None = None,
        properties: dict[str, str] | None = None,
        delay_level: int = 0,
    ) -> list[Sent]:
        """Send messages; the last one is usually the one that is diagnosed."""
        return [
            await producer.send_or_raise(
                new_message(
                    TOPIC, b"coffee", tag=tag, keys="k", properties=properties, delay_level=delay_level
                )
            )
            for _ in range(count)
        ]

    async def consumer(
        self,
        listener: Listener = accept,
        *,
        tags: str | MessageSelector = "*",
        topic: str = TOPIC,
        group: str = GROUP,
        first: bool = True,
        reconsume_max: int | None = None,
        logged: bool = True,
        model: MessageModel = MessageModel.CLUSTERING,
        trace: str | None = None,
        strategy: Strategy | None = None,
        limits: PullLimits | None = None,
        client_id: str | None = None,
    ) -> PushConsumer:
        config = PushConsumerConfig(
            limits=limits or PullLimits(),
            strategy=strategy or averagely,
            message_model=model,
            consume_from=ConsumeFrom.FIRST_OFFSET if first else ConsumeFrom.LAST_OFFSET,
            reconsume_max=reconsume_max,
            trace_topic=trace,
            offsets_directory=str(self.logs / "offsets") if model is MessageModel.BROADCASTING else None,
        )
        events = self.events("consumer") if logged else None
        consumer = PushConsumer(await self.session(client_id), group, listener, config, events)
        await self._stack.enter_async_context(consumer)
        await consumer.subscribe(topic, tags)
        return consumer

    async def poller(self, group: str = GROUP) -> LitePullConsumer:
        config = LitePullConfig(ConsumeFrom.FIRST_OFFSET, auto_commit=False)
        consumer = LitePullConsumer(await self.session(), group, config, self.events("poller"))
        return await self._stack.enter_async_context(consumer)

    async def ask(
        self, message_id: str | None = None, *, logs: bool, cluster: bool = True, **asked: str | None
    ) -> tuple[Answer, ...]:
        """Diagnose with the cluster, the logs, or both."""
        files = sorted(path for path in self.logs.glob("*.ndjson") if path.stat().st_size) if logs else []
        runtime = self.broker._runtime
        assert runtime is not None
        question = Question(message_id, **asked)
        return await answers(question, self.admin if cluster else None, files, runtime)
