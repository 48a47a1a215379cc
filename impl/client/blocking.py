"""Clients for code without an event loop: each call blocks until its result is there."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from mqproof.impl.client.arguments import require_whole
from mqproof.impl.client.connection.client_settings import ClientSettings
from mqproof.impl.client.connection.connect import connect
from mqproof.impl.client.connection.request_hooks import RequestHook
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConfig, LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer, PushConsumerConfig
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import (
    ClientError,
    Listener,
    MessageQueue,
    Outcome,
    PullResult,
    ReceivedMessage,
    Sent,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.producing.queue_choice import Selector
from mqproof.impl.client.producing.thread_sends import ThreadSends
from mqproof.impl.client.producing.transaction_producer import (
    CheckListener,
    LocalTransaction,
    TransactionOutcome,
    TransactionProducer,
)
from mqproof.impl.remoting.message import Message
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.serving import loop_factory

T = TypeVar("T")


class BlockingClient:
    """A session, a producer and consumers for code without an event loop.

        with BlockingClient("127.0.0.1:9876") as client:
            client.send(new_message("T", b"hello"))

    Use it in a `with` block. Its methods may be called from any thread, and from listeners that are plain
    functions. A listener that is a coroutine function must not call them: it would wait for itself.

    The event loop runs in a separate thread. `send`, `send_or_raise` and `send_batch` talk to the broker in
    the calling thread, on connections of their own; see docs/explanation/client-speed.md.
    """

    def __init__(
        self,
        name_servers: str | None = None,
        *,
        consumer_group: str = "mqproof_consumer",
        producer: ProducerConfig | None = None,
        client_id: str | None = None,
        listener_threads: int = 20,
        tls: str | None = None,
        credentials: Credentials | None = None,
        instance: str | None = None,
        settings: ClientSettings | None = None,
        hooks: Sequence[RequestHook] = (),
    ) -> None:
        """Create a client that starts when its `with` block is entered.

        `name_servers`, `client_id`, `tls`, `credentials`, `instance`, `settings` and `hooks` are as in
        `connect`. The methods `queues`, `pull` and `commit`
        use `consumer_group`. `listener_threads` is the `concurrency` of consumers without a configuration.
        """
        self._name_servers = name_servers
        self._client_id = client_id
        self._tls = tls
        self._credentials = credentials
        self._instance, self._settings, self._hooks = instance, settings, hooks
        self._consumer_group = consumer_group
        self._producer_config = producer
        require_whole("listener_threads", listener_threads, 1)
        self._listener_threads = listener_threads
        self._consumer: PullConsumer | None = None
        self._loop = loop_factory()()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mqproof-client", daemon=True)

    def __enter__(self) -> Self:
        self._process = os.getpid()
        self._thread.start()
        try:
            self._run(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._process:
            return  # the parent process stops its session
        self._run(self._session.stop())
        self._sends.close()
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()  # Does not wait for a listener that does not return.

    # Sending.

    def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Outcome:
        """Send a message, as Producer.send does."""
        return self._send(
            lambda producer: producer.send(message, queue, select=select, timeout_ms=timeout_ms)
        )

    def send_or_raise(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Sent:
        """Send a message, as Producer.send_or_raise does. Raises SendError."""
        return self._send(
            lambda producer: producer.send_or_raise(message, queue, select=select, timeout_ms=timeout_ms)
        )

    def send_later(
        self, message: Message, queue: MessageQueue | None = None, *, select: Selector | None = None
    ) -> Future[Outcome]:
        """Send a message as Producer.send does, without waiting: the future returned receives the outcome."""
        work = self._producer.send(message, queue, select=select)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def send_many(
        self, messages: Iterable[Message], *, outstanding: int = 64, timeout_ms: int | None = None
    ) -> list[Outcome]:
        """Send messages concurrently, as Producer.send_many does."""
        return self._run(self._producer.send_many(messages, outstanding=outstanding, timeout_ms=timeout_ms))

    def send_batch(self, messages: Iterable[Message], queue: MessageQueue | None = None) -> list[Outcome]:
        """Send messages in batches, as Producer.send_batch does."""
        return self._send(lambda producer: producer.send_batch(messages, queue))

    def send_oneway(self, message: Message) -> str:
        """Send a message without a response, as Producer.send_oneway does."""
        return self._run(self._producer.send_oneway(message))

    def recall(self, topic: str, handle: str) -> None:
        """Withdraw a message that waits for its time, as Producer.recall does."""
        self._run(self._producer.recall(topic, handle))

    def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        select: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> Message:
        """Send a message and return the reply to it, as Producer.request does. Raises NoReplyError."""
        return self._run(self._producer.request(message, queue, select=select, timeout_ms=timeout_ms))

    def reply(
        self,
        request: ReceivedMessage,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Reply to a message that requests it, as Producer.reply does. Raises ReplyError."""
        self._run(self._producer.reply(request, body, properties=properties, timeout_ms=timeout_ms))

    @contextmanager
    def transactions(
        self, check: CheckListener, config: ProducerConfig | None = None
    ) -> Iterator["BlockingTransactions"]:
        """Return a producer of transactional messages that works while the block runs.

        Works as TransactionProducer. `check` is called in a thread if it is a plain function.
        """
        producer = self._run(self._transaction_producer(check, config))
        try:
            yield BlockingTransactions(producer, self._loop)
        finally:
            self._run(producer.stop())

    # Consuming.

    @contextmanager
    def consuming(
        self,
        group: str,
        topics: Mapping[str, str | MessageSelector],
        listener: Listener,
        config: PushConsumerConfig | None = None,
    ) -> Iterator[None]:
        """Pass messages to the listener, in threads, while the block runs. Works as PushConsumer.

        `topics` maps each topic to its tag expression or selector; `*` selects all messages.
        """
        consumer = self._run(self._push_consumer(group, topics, listener, config))
        try:
            yield
        finally:
            self._run(consumer.stop())

    @contextmanager
    def polling(
        self, group: str, topics: Mapping[str, str | MessageSelector], config: LitePullConfig | None = None
    ) -> Iterator["BlockingPoller"]:
        """Return a poller for messages that works while the block runs. Works as LitePullConsumer.

        `topics` maps each topic to its tag expression or selector; `*` selects all messages.
        """
        consumer = self._run(self._lite_pull_consumer(group, topics, config))
        try:
            yield BlockingPoller(consumer, self._loop)
        except BaseException:
            self._run(consumer.stop())
            raise
        else:
            self._run(consumer.__aexit__(None, None, None))

    def queues(self, topic: str) -> list[MessageQueue]:
        """Return the topic's readable queues, as PullConsumer.queues does."""
        return self._run(self._pull_consumer().queues(topic))

    def pull(
        self, queue: MessageQueue, offset: int, *, max_count: int = 32, tags: str | MessageSelector = "*"
    ) -> PullResult:
        """Pull messages as PullConsumer.pull does, without asking the broker to wait for new ones."""
        return self._run(self._pull_consumer().pull(queue, offset, max_count=max_count, tags=tags))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Commit an offset, as PullConsumer.commit does."""
        self._run(self._pull_consumer().commit(queue, offset))

    def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's committed offset, as PullConsumer.committed does."""
        return self._run(self._pull_consumer().committed(queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """Return the queue's first offset, as PullConsumer.min_offset does."""
        return self._run(self._pull_consumer().min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> int:
        """Return the queue's end offset, as PullConsumer.max_offset does."""
        return self._run(self._pull_consumer().max_offset(queue))

    # Internals.

    async def _start(self) -> None:
        self._session = connect(
            self._name_servers,
            self._client_id,
            tls=self._tls,
            credentials=self._credentials,
            instance=self._instance,
            settings=self._settings,
            hooks=self._hooks,
        )
        self._producer = Producer(self._session, self._producer_config)
        self._sends = ThreadSends(self._producer, self._session, self._loop, has_hooks=bool(self._hooks))
        await self._session.start()

    def _pull_consumer(self) -> PullConsumer:
        """Return the pull consumer, creating it on first use.

        A client that only sends thus joins no consumer group.
        """
        if self._consumer is None:
            self._consumer = PullConsumer(self._session, self._consumer_group)
        return self._consumer

    async def _transaction_producer(
        self, check: CheckListener, config: ProducerConfig | None
    ) -> TransactionProducer:
        return TransactionProducer(self._session, check, config)

    async def _push_consumer(
        self,
        group: str,
        topics: Mapping[str, str | MessageSelector],
        listener: Listener,
        config: PushConsumerConfig | None,
    ) -> PushConsumer:
        config = config or PushConsumerConfig(concurrency=self._listener_threads)
        consumer = PushConsumer(self._session, group, listener, config)
        for topic, tags in topics.items():
            await consumer.subscribe(topic, tags)
        await consumer.start()
        return consumer

    async def _lite_pull_consumer(
        self, group: str, topics: Mapping[str, str | MessageSelector], config: LitePullConfig | None
    ) -> LitePullConsumer:
        consumer = LitePullConsumer(self._session, group, config)
        await consumer.start()
        try:
            for topic, tags in topics.items():
                await consumer.subscribe(topic, tags)
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    def _send(self, send: Callable[[Producer], Coroutine[Any, Any, T]]) -> T:
        self._require_process()
        return self._sends.run(send)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _require_process(self) -> None:
        """Raise ClientError in a child process, which must not use the connections of its parent."""
        if os.getpid() != self._process:
            raise ClientError(f"the client belongs to process {self._process}: start another one here")


class BlockingTransactions:
    """A transaction producer whose calls block until the end was reported."""

    def __init__(self, producer: TransactionProducer, loop: asyncio.AbstractEventLoop) -> None:
        self._producer = producer
        self._loop = loop

    def send(
        self,
        message: Message,
        local: LocalTransaction,
        queue: MessageQueue | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> TransactionOutcome:
        """Send a half message and run the local transaction in a thread, as TransactionProducer.send does."""
        work = self._producer.send(message, local, queue, timeout_ms=timeout_ms)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class BlockingPoller:
    """A lite pull consumer whose calls block until they have a result."""

    def __init__(self, consumer: LitePullConsumer, loop: asyncio.AbstractEventLoop) -> None:
        self._consumer = consumer
        self._loop = loop

    def poll(self, timeout_ms: int = 5000, max_count: int = 10) -> list[ReceivedMessage]:
        """Return the next messages, as LitePullConsumer.poll does."""
        return self._run(self._consumer.poll(timeout_ms, max_count))

    def commit(self) -> None:
        """Commit the messages polled, as LitePullConsumer.commit does."""
        self._run(self._consumer.commit())

    def assignment(self) -> list[MessageQueue]:
        """Return the queues being read, as LitePullConsumer.assignment does."""
        return self._consumer.assignment()

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Move to an offset, as LitePullConsumer.seek does."""
        self._run(self._consumer.seek(queue, offset))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
