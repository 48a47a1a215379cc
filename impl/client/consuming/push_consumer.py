"""Passes messages of subscribed topics to a listener, and keeps track of which are consumed.

See docs/reference/protocol/groups.md, "Push consumers".
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Self

from mqproof.impl.client.arguments import (
    require_function,
    require_group,
    require_kind,
    require_methods,
    require_whole,
)
from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import Strategy, averagely
from mqproof.impl.client.consuming.assigned_queues import AssignedQueues, PullLimits
from mqproof.impl.client.consuming.concurrent import ConcurrentConsumption
from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lifecycle import Lifecycle
from mqproof.impl.client.consuming.listener import SafeListener
from mqproof.impl.client.consuming.locks import RENEWAL_S, QueueLocks
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, FileOffsets, Offsets, OffsetStore
from mqproof.impl.client.consuming.orderly import OrderlyConsumption
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.consuming.redelivery import Redelivery
from mqproof.impl.client.consuming.running_info import running_info
from mqproof.impl.client.consuming.start_offset import ConsumeFrom, require_start, start_offset, start_time_ms
from mqproof.impl.client.consuming.subscriptions import Subscriptions, add_accepted, require_accepted
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import (
    ClientError,
    Listener,
    MessageQueue,
    ReceivedMessage,
)
from mqproof.impl.client.producing.producer import Producer, ProducerConfig, trace_dispatcher
from mqproof.impl.client.tracing.traced_calls import TracedCalls
from mqproof.impl.remoting.bodies import ConsumedDirectly, ConsumerData, RunningInfo
from mqproof.impl.remoting.message import RETRY_PREFIX, StoredMessage
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.listener_threads import ListenerThreads
from mqproof.impl.runtime.properties import as_text

_log = logging.getLogger(__name__)

_RECONSUME_MAX: Final = 16
_FIRST_RENEWAL_S: Final = 1.0

_CLOCKS_APART_MS: Final = 60_000
"""How far the clocks of a member and a broker may be apart without a loss of messages."""


class MessageModel(StrEnum):
    """How the messages of a topic are divided among the members of a group."""

    CLUSTERING = "CLUSTERING"
    """Each message is delivered to one member of the group."""
    BROADCASTING = "BROADCASTING"
    """Each message is delivered to every member. A message that fails is not redelivered."""


@dataclass(frozen=True, slots=True)
class PushConsumerConfig:
    """The configuration of a push consumer. The defaults are RocketMQ's."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """Whether each message is delivered to one member, or to every member."""
    orderly: bool = False
    """Consume each queue in order, by one member at a time. A message that fails blocks its queue."""
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where a group without stored offsets starts."""
    consume_from_ms: int | None = None
    """The time to start at with TIMESTAMP, in ms since the epoch. None means half an hour before the start.
    """
    strategy: Strategy = averagely
    """How the queues are divided among the members. All members must use the same strategy."""
    concurrency: int = 20
    """The maximum number of concurrent calls of the listener.

    If the listener is a plain function, this is also the number of its threads.
    """
    batch_max: int = 1
    """The maximum number of messages in one call of the listener."""
    limits: PullLimits = field(default_factory=PullLimits)
    """The limits of pulling ahead."""
    reconsume_max: int | None = None
    """How often a message is redelivered before it becomes a dead letter.

    None means 16, and for orderly consumers no limit.
    """
    consume_timeout_ms: int = 15 * 60_000
    """A message whose listener takes longer is sent back while the listener runs.

    Orderly consumers ignore it.
    """
    offsets_directory: str | None = None
    """The directory in which a broadcast consumer keeps its offsets.

    Required for broadcast, unless there is an `offset_store`.
    """
    offset_store: OffsetStore | None = None
    """Where the offsets are stored instead of at the brokers, or in `offsets_directory`."""
    queue_listener: Callable[[str, Sequence[MessageQueue]], None] | None = None
    """Called with a topic and the queues that the member reads of it, after a change."""
    trace_topic: str | None = None
    """The topic for traces of the listener's calls, usually RMQ_SYS_TRACE_TOPIC; None traces nothing."""
    persist_interval_ms: int = 5000
    """The pause between two writes of the offsets."""
    stop_timeout_ms: int = 5000
    """How long a stop waits for listeners to return."""


class PushConsumer:
    """A member of a consumer group that passes messages to a listener as they arrive.

        async with PushConsumer(session, "orders", listener) as consumer:
            await consumer.subscribe("T", "TagA || TagB")

    Delivery is at least once, so the listener may receive a message more than once. Messages that were not
    consumed are delivered again through the group's retry topic. After too many deliveries they go to
    `%DLQ%<group>`.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        listener: Listener,
        config: PushConsumerConfig | None = None,
        events: EventLog | None = None,
    ) -> None:
        """Create a consumer.

        Raises:
            ValueError: the group name or a number of the configuration is invalid, or a broadcast consumer
                has no directory for offsets.
            TypeError: the listener is not a function, or a value of the configuration has another type.
        """
        config = config or PushConsumerConfig()
        require_function("listener", listener)
        require_group(group)
        _check(config)
        self._session = session
        self._group = group
        self._config = config
        self._subscribed_ms: dict[str, int] = {}
        """When each topic was subscribed to."""
        self._is_cluster = config.message_model is MessageModel.CLUSTERING
        self._subscriptions = Subscriptions(session.runtime.clock)
        in_order = config.orderly and self._is_cluster
        self._events = ConsumerEvents(events, group, session.client_id, orderly=in_order)
        self._calls = GroupRequests(session, group)
        self._offsets = Offsets(self._offset_store())
        self._locks = QueueLocks(self._calls) if in_order else None
        self._rates = ConsumeRates()
        self._threads = ListenerThreads(session.runtime, config.concurrency)
        traces = trace_dispatcher(session, f"{group}-CONSUME", config.trace_topic)
        traced = None if traces is None else TracedCalls(traces, group, session.runtime)
        self._listening = SafeListener(listener, self._threads.run, self._rates, traced)
        self._leaving: dict[MessageQueue, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._concurrency = config.concurrency
        self._life = Lifecycle(f"the push consumer of group {group}")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def subscribe(self, topic: str, tags: str | MessageSelector = "*") -> None:
        """Consume the topic's messages with one of these tags: `TagA || TagB`, or `*` for all.

        `tags` may also be a MessageSelector. All members of a group must have the same subscriptions. The
        topic need not exist yet: its route is requested until it does.

        Raises:
            ValueError: `tags` is not a tag expression, or the name of the topic is not allowed.
            RefusalError: a broker refuses the SQL92 expression. The subscription is as it was before.
            ClientError: another process is a consumer of the group with the same client id.
        """
        self._subscribed_ms.setdefault(topic, now_ms(self._session.runtime.clock))
        if self._life.is_started:
            await add_accepted(self._calls, self._subscriptions, topic, tags)
            await self._announce()
        else:
            self._subscriptions.add(topic, tags)

    async def unsubscribe(self, topic: str) -> None:
        """Stop consuming the topic."""
        self._subscriptions.remove(topic)
        self._subscribed_ms.pop(topic, None)
        if self._life.is_started:
            await self._announce()

    async def start(self) -> None:
        """Join the group and start consuming in the background. Operations that fail are retried.

        Raises:
            ClientError: the consumer was started before, or the group has another consumer with the same
                client id, in this process or in another one.
            RefusalError: a broker refuses an SQL92 expression.
        """
        self._life.require_new()  # before it joins: a member that is stopped must not take the group
        for topic in self._subscriptions.topics():
            await require_accepted(self._calls, self._subscriptions, topic)
        await self._calls.require_sole(self._subscriptions.topics())
        self._life.require_new()
        self._join()
        self._life.start()
        config = self._config
        self._started_ms = now_ms(self._session.runtime.clock)
        self._since_ms = start_time_ms(config.consume_from_ms, self._started_ms)
        if self._is_cluster:
            self._subscriptions.add(RETRY_PREFIX + self._group)
        self._consumption = self._new_consumption()
        self._queues = AssignedQueues(
            self._calls,
            self._offsets,
            # An orderly consumer also consumes the messages in between, so the span cannot grow large.
            replace(config.limits, span_max=None) if config.orderly else config.limits,
            self._subscriptions.selector_of,
            self._consumption.receive,
            self._consumption.settled,
            self._rates,
        )
        strategy = config.strategy if self._is_cluster else None
        self._rebalancer = Rebalancer(
            self._session,
            self._calls,
            self,
            self._events,
            self._subscriptions.topics,
            strategy,
            self._queues_changed,
        )
        await self._announce()
        self._tasks = [asyncio.create_task(each) for each in self._background()]

    def queues(self) -> list[MessageQueue]:
        """Return the queues that this member reads now, sorted, without the group's retry topic."""
        self._life.require_started()
        return sorted(each for each in self._queues.queues() if not each.topic.startswith(RETRY_PREFIX))

    def suspend(self) -> None:
        """Pull no more messages until `resume`. Messages that were pulled before are still consumed.

        The member stays in its group and keeps its queues.
        """
        self._life.require_started()
        self._queues.suspend()

    def resume(self) -> None:
        """Pull messages again."""
        self._life.require_started()
        self._queues.resume()

    async def set_concurrency(self, concurrency: int) -> None:
        """Change the maximum number of concurrent calls of the listener. Calls in progress are completed."""
        require_whole("concurrency", concurrency, 1)
        self._life.require_started()
        self._threads.resize(concurrency)
        await self._consumption.resize(concurrency)
        self._concurrency = concurrency

    async def stop(self) -> None:
        """Wait for the listeners, store the offsets, and leave the group. Does nothing at a second call.

        Raises:
            ClientError: the consumer was not started.
        """
        if not self._life.stop():
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._queues.stop()
        await self._consumption.stop(self._config.stop_timeout_ms / 1000)
        if self._leaving:
            await asyncio.wait(self._leaving.values(), timeout=self._config.stop_timeout_ms / 1000)
        await self._offsets.save()
        if self._locks is not None:
            await self._locks.unlock_all()
        self._threads.close()
        self._events.left()
        await self._session.leave_as_consumer(self._group)

    # The methods that the rebalancer calls.

    def owned(self) -> Collection[MessageQueue]:
        return self._queues.queues()

    async def gain(self, queue: MessageQueue) -> bool:
        if queue in self._leaving:
            return False  # the listener of an earlier assignment may still be running
        if self._locks is not None and not await self._locks.lock(queue):
            return False
        consume_from, since_ms = self._beginning(queue.topic)
        try:
            offset = await start_offset(queue, self._calls, self._offsets, consume_from, since_ms)
        except ClientError as error:
            _log.warning("%s is not read yet: %s", queue, error)
            return False
        if self._locks is not None and self._locks.confirmed_s(queue) is None:
            return False  # a renewal found meanwhile that another client has the lock
        self._queues.assign(queue, offset)
        return True

    def _beginning(self, topic: str) -> tuple[ConsumeFrom, int]:
        """Return where to begin in a queue without an offset, and the time for TIMESTAMP.

        A broadcast member that begins at the end gets every message that is sent after its subscription. In a
        queue that it finds later, it therefore begins at the time of the subscription. (Members of other
        groups need no such rule: brokers return 0 for the offset of a new queue.)
        """
        begins_at_end = self._config.consume_from is ConsumeFrom.LAST_OFFSET
        if not self._is_cluster and begins_at_end and self._rebalancer.has_tried(topic):
            return ConsumeFrom.TIMESTAMP, self._subscribed_ms[topic] - _CLOCKS_APART_MS
        return self._config.consume_from, self._since_ms

    async def lose(self, queue: MessageQueue) -> None:
        held = self._queues.drop(queue)
        if held is not None:
            task = self._leaving[queue] = asyncio.create_task(self._leave(held))
            task.add_done_callback(lambda _: self._leaving.pop(queue, None))

    async def _leave(self, held: ProcessQueue) -> None:
        await self._offsets.release(held.queue)
        # The next owner waits for the lock, and so for the listener to return.
        await self._consumption.settled(held)
        if self._locks is not None:
            await self._locks.unlock([held.queue])

    # The methods that answer requests of brokers.

    def members_changed(self) -> None:
        self._rebalancer.soon()

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        self._queues.reset(topic, offsets)

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        return self._queues.progress(topic)

    def running_info(self) -> RunningInfo:
        config = self._config
        properties = {
            **self._session.properties("CONSUME_PASSIVELY"),
            "PROP_CONSUMEORDERLY": as_text(config.orderly),
            "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
            "PROP_THREADPOOL_CORE_SIZE": str(self._concurrency),
            "consumeMessageBatchMaxSize": str(config.batch_max),
            "messageModel": config.message_model,
            "pullBatchSize": str(config.limits.batch),
        }
        return running_info(
            self._session.runtime.clock,
            self._queues.process_queues(),
            self._offsets,
            self._locks,
            self._rates,
            self._subscriptions,
            properties,
        )

    async def consume_directly(self, message: StoredMessage, broker_name: str) -> ConsumedDirectly:
        """Pass the message to the listener and return the result. Nothing is committed or sent back."""
        queue = MessageQueue(message.message.topic, broker_name, message.message.queue_id)
        received = ReceivedMessage(message, queue, message.message.reconsume_times)
        begun_s = asyncio.get_running_loop().time()
        remark = None
        try:
            answer = await self._listening.attempt([received])
            result = "CR_SUCCESS" if answer is None or answer.done else "CR_LATER"
        except Exception as error:  # the exception is the result to report
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
        spent_s = asyncio.get_running_loop().time() - begun_s
        return ConsumedDirectly(
            consume_result=result,
            order=self._config.orderly,
            remark=remark,
            spent_time_mills=round(spent_s * 1000),
        )

    # Internals.

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        """Return the coroutines that run in the background while the consumer is started."""
        config = self._config
        work = [self._rebalancer.run(), repeat(self._offsets.save, config.persist_interval_ms / 1000)]
        if isinstance(self._consumption, ConcurrentConsumption):
            work.append(repeat(self._give_back_overdue, config.consume_timeout_ms / 1000))
        if self._locks is not None:
            work.append(repeat(self._renew_locks, RENEWAL_S, _FIRST_RENEWAL_S))
        return work

    def _queues_changed(self, topic: str) -> None:
        listener = self._config.queue_listener
        if listener is not None and not topic.startswith(RETRY_PREFIX):
            try:
                listener(topic, [queue for queue in self.queues() if queue.topic == topic])
            except Exception as error:  # an error of the application must not end its consumer
                _log.error("the queue listener failed on %s", topic, exc_info=error)

    def _offset_store(self) -> OffsetStore:
        if self._config.offset_store is not None:
            return self._config.offset_store
        if self._is_cluster:
            return BrokerOffsets(self._calls, self._events)
        if self._config.offsets_directory is None:
            raise ValueError("a broadcast consumer needs an offsets_directory or an offset_store")
        directory, client_id = self._config.offsets_directory, self._session.client_id
        return FileOffsets(directory, client_id, self._group, self._session.runtime)

    def _new_consumption(self) -> ConcurrentConsumption | OrderlyConsumption:
        config = self._config
        redelivery = None
        if self._is_cluster:
            producer = Producer(self._session, ProducerConfig(group="CLIENT_INNER_PRODUCER"))
            most = _RECONSUME_MAX if config.reconsume_max is None else config.reconsume_max
            redelivery = Redelivery(self._calls, producer, most, self._events)
        if not config.orderly:
            return ConcurrentConsumption(
                self._listening,
                self._offsets,
                redelivery,
                self._events,
                concurrency=config.concurrency,
                batch_max=config.batch_max,
            )
        return OrderlyConsumption(
            self._listening,
            self._offsets,
            redelivery,
            self._locks,
            self._events,
            concurrency=config.concurrency,
            batch_max=config.batch_max,
            reconsume_max=config.reconsume_max,
        )

    async def _announce(self) -> None:
        """Send the current subscriptions to all brokers known so far.

        The rebalancer sends them to the others.
        """
        self._join()
        await self._session.heartbeat()
        self._rebalancer.soon()

    def _join(self) -> None:
        """Join the group with the current subscriptions. Raises ClientError if it has another consumer."""
        data = ConsumerData(
            self._group,
            self._config.consume_from,
            "CONSUME_PASSIVELY",
            self._config.message_model,
            self._subscriptions.all(),
        )
        self._session.join_as_consumer(data, self)
        self._events.subscribes(self._subscriptions.selectors())

    async def _renew_locks(self) -> None:
        assert self._locks is not None
        for queue in await self._locks.renew():
            _log.warning("another client holds the lock of %s", queue)
            await self.lose(queue)
            self._rebalancer.soon()

    async def _give_back_overdue(self) -> None:
        assert isinstance(self._consumption, ConcurrentConsumption)
        for held in self._queues.process_queues():
            await self._consumption.give_back_overdue(held, self._config.consume_timeout_ms / 1000)


def _check(config: PushConsumerConfig) -> None:
    require_kind("message_model", config.message_model, MessageModel)
    require_kind("orderly", config.orderly, bool)
    require_kind("limits", config.limits, PullLimits)
    require_function("strategy", config.strategy)
    if config.offset_store is not None:
        require_methods("offset_store", config.offset_store, ("load", "save", "release"))
    if config.queue_listener is not None:
        require_function("queue_listener", config.queue_listener)
    require_start(config.consume_from, config.consume_from_ms)
    require_whole("concurrency", config.concurrency, 1)
    require_whole("batch_max", config.batch_max, 1)
    require_whole("consume_timeout_ms", config.consume_timeout_ms, 1)
    require_whole("persist_interval_ms", config.persist_interval_ms, 1)
    require_whole("stop_timeout_ms", config.stop_timeout_ms)
    if config.reconsume_max is not None:
        require_whole("reconsume_max", config.reconsume_max)
