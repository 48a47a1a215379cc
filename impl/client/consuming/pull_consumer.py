"""Reads queues by offset. The application chooses where to start and what to commit."""

from mqproof.impl.client.arguments import require_group, require_time_ms, require_topic
from mqproof.impl.client.connection.routes import require, subscribe_queues
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.message_selector import MessageSelector, as_selector
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult
from mqproof.impl.remoting.bodies import ConsumerData
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime.event_log import EventLog


class PullConsumer:
    """A member of a consumer group that chooses itself which queues it reads.

    Every method raises ClientError when the broker refuses the request, cannot be reached, or does not
    respond in time.
    """

    def __init__(self, session: Session, group: str, events: EventLog | None = None) -> None:
        require_group(group)
        self._session = session
        self._calls = GroupRequests(session, group)
        self._events = ConsumerEvents(events, group, session.client_id)
        session.join_as_consumer(ConsumerData(group, consume_type="CONSUME_ACTIVELY"))

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Return the topic's readable queues, and record in the event log that this consumer reads them.

        Raises NoRouteError when no name server has a route for the topic.
        """
        require_topic(topic)
        queues = await topic_queues(self._session, topic)
        self._events.rebalanced(topic, len(queues))
        return queues

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_count: int = 32,
        tags: str | MessageSelector = "*",
        hold_ms: int = 0,
    ) -> PullResult:
        """Return messages starting at `offset`. The broker may wait `hold_ms` for the first one.

        `tags` is `TagA || TagB`, `*` for all, or a MessageSelector.
        """
        self._events.selects(queue.topic, as_selector(tags))
        result = await self._calls.pull(queue, offset, max_count=max_count, tags=tags, hold_ms=hold_ms)
        self._events.delivered(queue, result.messages)
        return result

    async def commit(self, queue: MessageQueue, offset: int, *, reset: bool = False) -> None:
        """Report to the broker that every message before `offset` is consumed, and wait for its confirmation.

        `reset` marks the event in the event log: the offset does not result from consumption, so it may go
        back.
        """
        await self._session.greet()  # 5.x accepts an offset only of a group that a heartbeat registered
        await self._calls.commit(queue, offset)
        self._events.committed(queue, offset, reset=reset)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's committed offset, or None if it has none and the start of the queue is deleted.

        For a group that never committed in a queue that still has its first message, the offset is 0.
        """
        return await self._calls.committed(queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first offset that can be read."""
        return await self._calls.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the end offset: one more than the last offset."""
        return await self._calls.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the message whose store time is nearest to the timestamp.

        Raises TypeError for a time that is not a number.
        """
        require_time_ms("timestamp_ms", timestamp_ms)
        return await self._calls.search_offset(queue, timestamp_ms)


async def topic_queues(session: Session, topic: str) -> list[MessageQueue]:
    """Return the topic's readable queues, from a newly requested route. Raises ClientError, NoRouteError."""
    try:
        route = await session.routes.refresh(topic)
    except RemotingError as error:
        raise ClientError(f"queues of {topic}: {error}") from None
    return subscribe_queues(topic, require(topic, route))
