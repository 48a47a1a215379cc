"""A broker, its clients and their event logs, in one event loop, and the diagnosis of what happened there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, Self
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
from mqproof.impl.runtime.runtime import Runtime

Listener = Callable[[Sequence[ReceivedMessage]], Awaitable[RetryLater | None] | RetryLater | None]


async def accept(messages: Sequence[ReceivedMessage]) -> None:
    """Consume the messages."""


async def fail(messages: Sequence[ReceivedMessage]) -> None:
    raise ValueError("the listener fails on purpose")


class Time(Protocol):
    """The clock of a scene."""

    def now_us(self) -> int: ...

    async def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let that much time pass for the broker and the clients."""


class Scene:
    """A broker, and one topic and group there. `logs` is where the clients write, and the broker if it can.

    Each of them writes into a file of its own.
    """

    def __init__(
        self, folder: Path, name_server: str, runtime: Runtime, clock: Time, name: str | None = None
    ) -> None:
        self.logs = folder
        self.clock = clock
        suffix = f"-{name}" if name else ""
        self.topic, self.group = f"Orders{suffix}", f"billing{suffix}"
        self._address, self._runtime = Address.parse(name_server), runtime
        self._stack = AsyncExitStack()
        self._nodes = 0
        self._end = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.admin = await self._stack.enter_async_context(Admin([self._address], self._runtime))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._end.set()
        await self._stack.aclose()

    async def hang(self, _: Sequence[ReceivedMessage]) -> None:
        """A listener that returns when the scene ends."""
        await self._end.wait()

    def events(self, name: str) -> EventLog:
        self._nodes += 1
        path = self.logs / f"{name}-{self._nodes}.ndjson"
        return EventLog.to_file(str(path), path.stem, self.clock)

    async def session(self, client_id: str | None = None) -> Session:
        return await self._stack.enter_async_context(Session([self._address], self._runtime, client_id))

    async def create(self, topic: str | None = None, queues: int = 1, perm: int = 6) -> None:
        masters = await self.admin.masters("DefaultCluster")
        topic = topic or self.topic
        config = TopicConfig(topic, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
        await update_topic(self.admin, masters, config)

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
                    self.topic, b"coffee", tag=tag, keys="k", properties=properties, delay_level=delay_level
                )
            )
            for _ in range(count)
        ]

    async def consumer(
        self,
        listener: Listener = accept,
        *,
        tags: str | MessageSelector = "*",
        topic: str | None = None,
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
        consumer = PushConsumer(await self.session(client_id), self.group, listener, config, events)
        await self._stack.enter_async_context(consumer)
        await consumer.subscribe(topic or self.topic, tags)
        return consumer

    async def poller(self) -> LitePullConsumer:
        config = LitePullConfig(ConsumeFrom.FIRST_OFFSET, auto_commit=False)
        consumer = LitePullConsumer(await self.session(), self.group, config, self.events("poller"))
        return await self._stack.enter_async_context(consumer)

    async def ask(
        self, message_id: str | None = None, *, logs: bool, cluster: bool = True, **asked: str | None
    ) -> tuple[Answer, ...]:
        """Diagnose with the cluster, the logs, or both."""
        files = sorted(path for path in self.logs.glob("*.ndjson") if path.stat().st_size) if logs else []
        question = Question(message_id, **asked)
        return await answers(question, self.admin if cluster else None, files, self._runtime)


class EmbeddedScene(Scene):
    """A scene at a broker of its own in this process, which writes an event log and can fail on request."""

    def __init__(self, folder: Path, broker: EmbeddedBroker) -> None:
        assert broker._runtime is not None
        super().__init__(folder, broker.name_server, broker._runtime, broker.clock)
        self.broker = broker

    async def session(self, client_id: str | None = None) -> Session:
        return await self._stack.enter_async_context(self.broker.client(client_id))


@asynccontextmanager
async def embedded_scene(
    folder: Path, properties: dict[str, str] | None = None
) -> AsyncIterator[EmbeddedScene]:
    events = EventLog.to_file(
        str(folder / "broker-a.ndjson"), "broker-a", of_loop(asyncio.get_running_loop())
    )
    async with AsyncExitStack() as stack:
        with patch.object(embedded_broker, "Broker", partial(Broker, events=events)):
            broker = await stack.enter_async_context(EmbeddedBroker(properties=properties))
        yield await stack.enter_async_context(EmbeddedScene(folder, broker))
