"""Calls an application function periodically for each queue of this member. It pulls, consumes and commits.

See docs/reference/protocol/groups.md, "Lite pull consumers".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import TracebackType
from typing import Final, Self

from mqproof.impl.client.arguments import require_function
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import Strategy, averagely
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.lifecycle import Lifecycle
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.rebalance import Rebalancer
from mqproof.impl.client.consuming.subscriptions import Subscriptions, add_accepted
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting import bodies
from mqproof.impl.remoting.bodies import ConsumerData, HeldQueue, RunningInfo
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.runtime.event_log import EventLog

_log = logging.getLogger(__name__)

_PAUSE_MS: Final = 200

PullTask = Callable[[PullConsumer, MessageQueue], Awaitable[int | None]]
"""One step of work on one queue.

Returns the delay in milliseconds before the next call for that queue; None means 200. Exceptions are logged.
"""


class ScheduledPull:
    """A member of a consumer group that calls tasks for its queues.

        async with ScheduledPull(session, "orders") as service:
            await service.register("T", task)

    Calls for one queue never overlap. When the queue goes to another member, the call in progress is the
    last.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        strategy: Strategy = averagely,
        events: EventLog | None = None,
    ) -> None:
        """Create a service that is not started.

        Raises:
            ValueError: the name of the group is not allowed.
        """
        self._consumer = PullConsumer(session, group, events)
        self._session = session
        self._group = group
        self._life = Lifecycle(f"the scheduled pull of group {group}")
        self._subscriptions = Subscriptions(session.runtime.clock)
        self._tasks: dict[str, PullTask] = {}
        self._leave: dict[MessageQueue, asyncio.Event] = {}
        self._running: dict[MessageQueue, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._calls = GroupRequests(session, group)
        self._rebalancer = Rebalancer(
            session,
            self._calls,
            self,
            ConsumerEvents(events, group, session.client_id),
            self._subscriptions.topics,
            strategy,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Take part in the division of queues. Raises ClientError if the service was started before."""
        self._life.start()
        self._in_background(asyncio.create_task(self._rebalancer.run()))

    async def stop(self) -> None:
        """Wait for the calls in progress, and leave the group. Does nothing at a second call.

        Raises:
            ClientError: the service was not started.
        """
        if not self._life.stop():
            return
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        for leave in self._leave.values():
            leave.set()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._session.leave_as_consumer(self._group)

    async def register(self, topic: str, task: PullTask) -> None:
        """Call the task for each of the topic's queues that belong to this member.

        Raises:
            TypeError: the task is not a function.
            ValueError: the name of the topic is not allowed.
            ClientError: the service is not started, or the group has another consumer with the same client
                id, in this process or in another one.
        """
        require_function("task", task)
        self._life.require_started()
        await add_accepted(self._calls, self._subscriptions, topic)
        self._tasks[topic] = task
        data = ConsumerData(
            self._group, consume_type="CONSUME_ACTIVELY", subscription_data_set=self._subscriptions.all()
        )
        self._session.join_as_consumer(data, self)
        await self._session.heartbeat()
        self._rebalancer.soon()

    # The methods that the rebalancer calls.

    def owned(self) -> Collection[MessageQueue]:
        return list(self._leave)

    async def gain(self, queue: MessageQueue) -> bool:
        if queue in self._running:
            return False  # the last call of an earlier assignment is still running
        leave = self._leave[queue] = asyncio.Event()
        task = self._running[queue] = asyncio.create_task(self._work(queue, leave))
        task.add_done_callback(lambda _: self._running.pop(queue, None))
        return True

    async def lose(self, queue: MessageQueue) -> None:
        self._leave.pop(queue).set()

    # The methods that answer requests of brokers.

    def members_changed(self) -> None:
        self._rebalancer.soon()

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Store the offset. The application decides whether to read it again."""
        mine = {queue: offset for queue, offset in offsets.items() if queue in self._leave}
        for queue, offset in mine.items():
            if queue.topic == topic:
                self._in_background(asyncio.create_task(self._store(queue, offset)))

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:  # noqa: ARG002  # a Member's signature
        return {}  # the application keeps it

    def running_info(self) -> RunningInfo:
        held = {
            ObjectKey(bodies.MessageQueue(q.broker_name, q.queue_id, q.topic)): HeldQueue()
            for q in sorted(self._leave)
        }
        properties = self._session.properties("CONSUME_ACTIVELY")
        return RunningInfo(held, properties, subscription_set=self._subscriptions.all())

    async def consume_directly(self, message: StoredMessage, broker_name: str) -> None:
        """Return None: a task is not a listener, because it pulls messages itself."""

    # Internals.

    async def _work(self, queue: MessageQueue, leave: asyncio.Event) -> None:
        while not leave.is_set():
            pause_ms = None
            try:
                pause_ms = await self._tasks[queue.topic](self._consumer, queue)
            except Exception as error:  # an error of the application must not end the service
                _log.error("the task failed on %s", queue, exc_info=error)
            try:
                async with asyncio.timeout((_PAUSE_MS if pause_ms is None else pause_ms) / 1000):
                    await leave.wait()
            except TimeoutError:
                continue

    async def _store(self, queue: MessageQueue, offset: int) -> None:
        try:
            await self._consumer.commit(queue, offset, reset=True)
        except ClientError as error:
            _log.warning("an offset is not reset: %s", error)

    def _in_background(self, task: asyncio.Task[None]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)
