"""The clients for code without an event loop: each call waits for its result."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from impl.client.model import MessageQueue, Outcome, PullResult
from impl.client.producer import Producer, ProducerConfig
from impl.client.pull_consumer import PullConsumer
from impl.client.session import Session
from impl.message import Message
from impl.runtime.network import Address, AsyncioNetwork
from impl.runtime.runtime import production

T = TypeVar("T")


class BlockingClient:
    """A session, a producer and a pull consumer with an event loop in a thread of their own.

    Use it in a `with` block; its methods may be called from any thread.
    """

    def __init__(
        self,
        name_servers: Sequence[Address],
        *,
        consumer_group: str = "mqproof_consumer",
        producer: ProducerConfig | None = None,
    ) -> None:
        self._name_servers = name_servers
        self._consumer_group = consumer_group
        self._producer_config = producer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mqproof-client", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._session.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def send(self, message: Message, queue: MessageQueue | None = None) -> Outcome:
        """As Producer.send."""
        return self._run(self._producer.send(message, queue))

    def queues(self, topic: str) -> list[MessageQueue]:
        """As PullConsumer.queues."""
        return self._run(self._consumer.queues(topic))

    def pull(self, queue: MessageQueue, offset: int, *, max_count: int = 32, tags: str = "*") -> PullResult:
        """As PullConsumer.pull, without a hold."""
        return self._run(self._consumer.pull(queue, offset, max_count=max_count, tags=tags))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """As PullConsumer.commit."""
        self._run(self._consumer.commit(queue, offset))

    def committed(self, queue: MessageQueue) -> int | None:
        """As PullConsumer.committed."""
        return self._run(self._consumer.committed(queue))

    async def _start(self) -> None:
        self._session = Session(self._name_servers, production(AsyncioNetwork()))
        self._producer = Producer(self._session, self._producer_config)
        self._consumer = PullConsumer(self._session, self._consumer_group)
        await self._session.start()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
