"""A consumer that pulls messages ahead in the background and returns them when the application polls.

See docs/reference/protocol/groups.md, "Lite pull consumers".
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from mqproof.impl.client.arguments import (
    require_function,
    require_group,
    require_kind,
    require_methods,
    require_time_ms,
    require_whole,
)
from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import Strategy, averagely
from mqproof.impl.client.consuming.assigned_queues import AssignedQueues, PullLimits
from mqproof.impl.client.consuming.consume_rates import ConsumeRates
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lifecycle import Lifecycle
from mqproof.impl.client.consuming.offset_store import BrokerOffsets, Offsets, OffsetStore
from mqproof.impl.client.consuming.process_queue import ProcessQueue
from mqproof.impl.client.consuming.pull_consumer import topic_queues
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.consuming.running_info import running_info
from mqproof.impl.client.consuming.start_offset import ConsumeFrom, require_start, start_offset, start_time_ms
from mqproof.impl.client.consuming.subscriptions import Subscriptions, add_accepted
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage
from mqproof.impl.remoting.bodies import ConsumerData, RunningInfo
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.event_log import EventLog

_log = logging.getLogger(__name__)

_ITERATION_POLL_MS: Final = 5000


@dataclass(frozen=True, slots=True)
class LitePullConfig:
    """The configuration of a lite pull consumer. The defaults are RocketMQ's."""

    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    """Where a group without stored offsets starts."""
    consume_from_ms: int | None = None
    """The time to start at with TIMESTAMP, in ms since the epoch. None means half an hour before the start.
    """
    strategy: Strategy = averagely
    """How the queues are divided among the members. All members must use the same strategy."""
    limits: PullLimits = field(default_factory=lambda: PullLimits(hold_ms=20_000, span_max=None))
    """The limits of pulling ahead."""
    offset_store: OffsetStore | None = None
    """Where the offsets are stored instead of at the brokers."""
    auto_commit: bool = True
    """Whether to store the offsets periodically. They cover the messages before those of the last poll."""
    commit_interval_ms: int = 5000
    """The pause between two stores of the offsets."""


class LitePullConsumer:
    """A member of a consumer group that requests messages when it is ready for them.

        async with LitePullConsumer(session, "orders") as consumer:
            await consumer.subscribe("T")
            while messages := await consumer.poll():
                ...

    With `subscribe`, the members of the group divide the queues among themselves. With `assign`, the
    application chooses the queues. The messages of one poll count as consumed at the next poll, at `commit`,
    and when the `async with` block ends without an exception.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        config: LitePullConfig | None = None,
        events: EventLog | None = None,
    ) -> None:
        self._session = session
        self._group = group
        self._config = config or LitePullConfig()
        require_group(group)
        _check(self._config)
        self._life = Lifecycle(f"the lite pull consumer of group {group}")
        self._events = ConsumerEvents(events, group, session.client_id)
        self._calls = GroupRequests(session, group)
        self._offsets = Offsets(self._config.offset_store or BrokerOffsets(self._calls, self._events))
        self._subscriptions = Subscriptions(session.runtime.clock)
        self._rates = ConsumeRates()
        self._queues = AssignedQueues(
            self._calls,
            self._offsets,
            self._config.limits,
            self._subscriptions.selector_of,
            self._received,
            self._settled,
            self._rates,
        )
        self._rebalancer = Rebalancer(
            session, self._calls, self, self._events, self._subscriptions.topics, self._config.strategy
        )
        self._arrived = asyncio.Event()
        self._paused: set[MessageQueue] = set()
        self._polled: tuple[ProcessQueue, list[ReceivedMessage]] | None = None
        self._last_polled: MessageQueue | None = None
        self._is_assigned = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._done()
        await self.stop()

    async def start(self) -> None:
        """Join the group.

        Raises:
            ClientError: the consumer was started before, or the group has another consumer with the same
                client id.
        """
        self._life.require_new()  # before it joins: a member that is stopped must not take the group
        await self._calls.require_sole([])
        self._life.require_new()
        self._join()
        self._life.start()
        self._since_ms = start_time_ms(self._config.consume_from_ms, now_ms(self._session.runtime.clock))
        await self._announce()
        if self._config.auto_commit:
            saving = repeat(self._offsets.save, self._config.commit_interval_ms / 1000)
            self._tasks.append(asyncio.create_task(saving))

    async def stop(self) -> None:
        """Store the consumed offsets and leave the group.

        The messages of the last poll will be delivered again. A second call does nothing.

        Raises:
            ClientError: the consumer was not started.
        """
        if not self._life.stop():
            return
        self._arrived.set()  # an iteration ends
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._queues.stop()
        if self._config.auto_commit:
            await self._offsets.save()
        self._events.left()
        await self._session.leave_as_consumer(self._group)

    async def subscribe(self, topic: str, tags: str | MessageSelector = "*") -> None:
        """Read part of the topic's queues. `tags` selects messages: `TagA || TagB`, or `*` for all.

        `tags` may also be a MessageSelector.

        Raises:
            ClientError: the consumer is not started, has assigned queues, or another process is a consumer of
                the group with the same client id.
            ValueError: `tags` is not a tag expression.
            RefusalError: a broker refuses the SQL92 expression. The subscription is as it was before.
        """
        self._life.require_started()
        if self._is_assigned:
            raise ClientError("this consumer has assigned queues: it can either subscribe or assign")
        is_first = not self._subscriptions.topics()
        await add_accepted(self._calls, self._subscriptions, topic, tags)
        await self._announce()
        if is_first:
            self._tasks.append(asyncio.create_task(self._rebalancer.run()))
        self._rebalancer.soon()

    async def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read exactly these queues from now on.

        Raises:
            ClientError: the start offset of a queue cannot be determined. The queues before it, in sorted
                order, are read.
        """
        self._life.require_started()
        if self._subscriptions.topics():
            raise ClientError("this consumer has subscribed: it can either subscribe or assign")
        self._is_assigned = True
        wanted, had = set(queues), set(self._queues.queues())
        for queue in had - wanted:
            await self.lose(queue)
        for queue in sorted(wanted - had):
            self._events.selects(queue.topic, self._subscriptions.selector_of(queue.topic))
            self._queues.assign(queue, await self._start_offset(queue))

    def assignment(self) -> list[MessageQueue]:
        """Return the queues that are being read, sorted."""
        return sorted(self._queues.queues())

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return the topic's readable queues. Raises ClientError, NoRouteError."""
        return await topic_queues(self._session, topic)

    async def poll(self, timeout_ms: int = 5000, max_count: int = 10) -> list[ReceivedMessage]:
        """Return the next messages, all of one queue and in its order; an empty list if none arrive in time.

        Do not poll concurrently: each poll marks the messages of the previous poll as consumed.

        Raises:
            ClientError: the consumer is not started, or has neither a subscription nor assigned queues.
        """
        self._require_queues()
        self._done()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while (held := self._next()) is None and self._life.is_started:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return []
        if held is None:
            return []
        messages = held.first(max_count)
        self._polled, self._last_polled = (held, messages), held.queue
        self._events.delivered(held.queue, [message.stored for message in messages])
        return messages

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages one by one. Each counts as consumed when the next one is requested.

            async for message in consumer:
                ...

        A message whose processing raised an exception is not consumed, and is delivered again after a
        restart. The iteration ends when the consumer stops.
        """
        while self._life.is_started:
            for message in await self.poll(_ITERATION_POLL_MS, 1):
                yield message

    async def unacknowledged(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages one by one. Each counts as consumed when `acknowledge` is called for it.

        The messages may be acknowledged in any order. The stored offset of a queue stays at its first message
        that is not acknowledged. A message that is never acknowledged is delivered again after a restart, or
        to the next member that reads the queue. Pulling pauses when too many messages wait (`limits`). Do not
        use `poll` on the same consumer.
        """
        while self._life.is_started:
            message = await self._next_unbegun()
            if message is not None:
                yield message

    async def acknowledge(self, message: ReceivedMessage) -> bool:
        """Mark one message of `unacknowledged` as consumed.

        Returns False if that has no effect: the message is acknowledged already, or another member reads its
        queue now and gets the message again. The offset is stored periodically, and by `commit`.
        """
        for held in self._queues.process_queues():
            if held.queue == message.queue and not held.is_dropped and held.holds(message):
                self._offsets.advance(held.queue, held.remove([message]))
                return True
        return False

    async def commit(self) -> None:
        """Mark everything polled as consumed and store the offsets.

        Offsets that a broker rejects are sent again later.
        """
        self._done()
        await self._offsets.save()

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's stored offset, or None if there is none. Raises ClientError."""
        return await self._calls.committed(queue)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at this offset, forward or back. The queue must be one that is being read."""
        if queue not in self._queues:
            raise ClientError(f"{queue} is not one of the queues being read")
        await self._queues.go_to(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Move to the first message that the queue has."""
        await self.seek(queue, await self._calls.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Move to the end of the queue, behind the last message."""
        await self.seek(queue, await self._calls.max_offset(queue))

    async def offset_for_time(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the message whose store time is nearest to the timestamp.

        Raises ClientError, and TypeError for a time that is not a number.
        """
        require_time_ms("timestamp_ms", timestamp_ms)
        return await self._calls.search_offset(queue, timestamp_ms)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Return no messages of these queues from polls, until `resume`."""
        self._paused.update(queues)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Return messages of these queues again."""
        self._paused.difference_update(queues)
        self._arrived.set()

    # The methods that the rebalancer calls.

    def owned(self) -> Collection[MessageQueue]:
        return self._queues.queues()

    async def gain(self, queue: MessageQueue) -> bool:
        try:
            offset = await self._start_offset(queue)
        except ClientError as error:
            _log.warning("%s is not read yet: %s", queue, error)
            return False
        self._queues.assign(queue, offset)
        return True

    async def lose(self, queue: MessageQueue) -> None:
        if self._queues.drop(queue) is not None:
            await self._offsets.release(queue)

    # The methods that answer requests of brokers.

    def members_changed(self) -> None:
        self._rebalancer.soon()

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        self._queues.reset(topic, offsets)

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        return self._queues.progress(topic)

    def running_info(self) -> RunningInfo:
        return running_info(
            self._session.runtime.clock,
            self._queues.process_queues(),
            self._offsets,
            None,
            self._rates,
            self._subscriptions,
            self._session.properties("CONSUME_ACTIVELY"),
        )

    async def consume_directly(self, message: StoredMessage, broker_name: str) -> None:
        """Return None: a consumer that polls has no listener."""

    # Internals.

    async def _announce(self) -> None:
        self._join()
        await self._session.heartbeat()

    def _join(self) -> None:
        data = ConsumerData(
            self._group,
            self._config.consume_from,
            "CONSUME_ACTIVELY",
            subscription_data_set=self._subscriptions.all(),
        )
        self._session.join_as_consumer(data, self)
        self._events.subscribes(self._subscriptions.selectors())

    async def _start_offset(self, queue: MessageQueue) -> int:
        return await start_offset(
            queue, self._calls, self._offsets, self._config.consume_from, self._since_ms
        )

    def _received(self, held: ProcessQueue, messages: list[ReceivedMessage]) -> None:  # noqa: ARG002  # polls read the process queues themselves
        self._arrived.set()

    async def _settled(self, held: ProcessQueue) -> None:
        """Return at once: polled messages of a dropped queue are ignored, so there is nothing to wait for."""

    def _next(self) -> ProcessQueue | None:
        """Return a queue that has messages, taking the queues in turn."""
        return next(iter(self._ready()), None)

    def _ready(self) -> list[ProcessQueue]:
        """Return the queues that have messages, starting with the one whose turn it is."""
        ready = [
            held
            for held in self._queues.process_queues()
            if len(held) and not held.is_dropped and held.queue not in self._paused
        ]
        last = self._last_polled
        return sorted(ready, key=lambda held: (last is not None and held.queue <= last, held.queue))

    async def _next_unbegun(self) -> ReceivedMessage | None:
        """Return the next message for `unacknowledged`; None when none arrives for some time."""
        self._require_queues()
        while self._life.is_started:
            for held in self._ready():
                for message in held.first_unbegun(1):
                    held.begin([message], upkeep.now_s())
                    self._last_polled = held.queue
                    self._events.delivered(held.queue, [message.stored])
                    return message
            self._arrived.clear()
            try:
                async with asyncio.timeout(_ITERATION_POLL_MS / 1000):
                    await self._arrived.wait()
            except TimeoutError:
                break
        return None

    def _require_queues(self) -> None:
        self._life.require_started()
        if not self._subscriptions.topics() and not self._is_assigned:
            raise ClientError("this consumer has neither a subscription nor assigned queues to poll")

    def _done(self) -> None:
        """Mark the messages of the last poll as consumed."""
        if self._polled is not None:
            held, messages = self._polled
            self._polled = None
            if not held.is_dropped:
                self._offsets.advance(held.queue, held.remove(messages))


def _check(config: LitePullConfig) -> None:
    require_start(config.consume_from, config.consume_from_ms)
    require_function("strategy", config.strategy)
    require_kind("limits", config.limits, PullLimits)
    require_kind("auto_commit", config.auto_commit, bool)
    require_whole("commit_interval_ms", config.commit_interval_ms, 1)
    if config.offset_store is not None:
        require_methods("offset_store", config.offset_store, ("load", "save", "release"))
