"""Reads queues by offset: the application says from where, and how far it got."""

from mqproof.impl.client.consumer_events import ConsumerEvents
from mqproof.impl.client.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue, PullResult
from mqproof.impl.client.routes import require, subscribe_queues
from mqproof.impl.client.session import Session
from mqproof.impl.remoting.bodies import ConsumerData
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime.event_log import EventLog


class PullConsumer:
    """A member of a consumer group that decides for itself which queues it reads.

    Every method raises ClientError when the broker refuses, cannot be reached, or does not answer in time.
    """

    def __init__(self, session: Session, group: str, events: EventLog | None = None) -> None:
        self._session = session
        self._calls = GroupRequests(session, group)
        self._events = ConsumerEvents(events, group, session.client_id)
        session.join_as_consumer(ConsumerData(group, consume_type="CONSUME_ACTIVELY"))

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The topic's readable queues, which this consumer is now expected to read.

        Raises NoRouteError when nobody knows the topic.
        """
        queues = await topic_queues(self._session, topic)
        self._events.rebalanced(topic, len(queues))
        return queues

    async def pull(
        self, queue: MessageQueue, offset: int, *, max_count: int = 32, tags: str = "*", hold_ms: int = 0
    ) -> PullResult:
        """Messages from `offset` on. With hold_ms, wait that long for the first one.

        `tags` is `TagA || TagB`, or `*` for all.
        """
        result = await self._calls.pull(queue, offset, max_count=max_count, tags=tags, hold_ms=hold_ms)
        self._events.delivered(queue, result.messages)
        return result

    async def commit(self, queue: MessageQueue, offset: int, *, reset: bool = False) -> None:
        """Tell the broker that everything before `offset` is done; returns when it has noted that.

        `reset` says in the event log that the offset did not get there by consuming: it may go back.
        """
        await self._session.greet()  # 5.x takes no offset of a group that no heartbeat told of
        await self._calls.commit(queue, offset)
        self._events.committed(queue, offset, reset=reset)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The offset the group committed; None when there is none and the queue's beginning is gone.

        A group that never committed in a queue that still has its first message is at 0.
        """
        return await self._calls.committed(queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset that can be read."""
        return await self._calls.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last offset."""
        return await self._calls.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message stored nearest to that time."""
        return await self._calls.search_offset(queue, timestamp_ms)


async def topic_queues(session: Session, topic: str) -> list[MessageQueue]:
    """The topic's readable queues, by a route that was just asked for. Raises ClientError, NoRouteError."""
    try:
        route = await session.routes.refresh(topic)
    except RemotingError as error:
        raise ClientError(f"queues of {topic}: {error}") from None
    return subscribe_queues(topic, require(topic, route))
