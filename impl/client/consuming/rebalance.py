"""Divides the queues of a group's topics among its members. Each member computes its own queues.

See docs/reference/protocol/groups.md, "Queue allocation".
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from mqproof.impl.client.connection.routes import require, subscribe_queues
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.allocation import Strategy
from mqproof.impl.client.consuming.consumer_events import ConsumerEvents
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.runtime import upkeep

_log = logging.getLogger(__name__)

_INTERVAL_S: Final = 20.0
_UNBALANCED_S: Final = 1.0
"""The pause after the first incomplete round. It doubles after each further one."""
_UNBALANCED_MAX_S: Final = 4.0
"""The longest pause after an incomplete round.

It limits how long a topic may exist before the queues of its consumers are found.
"""


class Owner(Protocol):
    """The consumer that reads the queues."""

    def owned(self) -> Collection[MessageQueue]:
        """Return the queues that are being read."""
        ...

    async def gain(self, queue: MessageQueue) -> bool:
        """Start reading the queue. Returns False if that is not possible yet."""
        ...

    async def lose(self, queue: MessageQueue) -> None:
        """Stop reading the queue, which this member has lost."""
        ...


class Rebalancer:
    """Keeps the owner's queues up to date: every 20 s, and soon after a change."""

    def __init__(
        self,
        session: Session,
        calls: GroupRequests,
        owner: Owner,
        events: ConsumerEvents,
        topics: Callable[[], Iterable[str]],
        strategy: Strategy | None,
        on_change: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create a rebalancer. Without a strategy the owner reads every queue (broadcast).

        `on_change` is called with a topic after the owner gained or lost queues of it.
        """
        self._session = session
        self._calls = calls
        self._owner = owner
        self._events = events
        self._topics = topics
        self._strategy = strategy
        self._on_change = on_change
        self._wake = upkeep.Wakeup()
        self._tried: set[str] = set()

    def has_tried(self, topic: str) -> bool:
        """Return whether a round that included the topic has ended, with its queues known or not."""
        return topic in self._tried

    def soon(self) -> None:
        """Request a round as soon as possible."""
        self._wake.set()

    async def run(self) -> None:
        """Run rounds until cancelled."""
        retry_s = _UNBALANCED_S
        while True:
            self._wake.clear()
            try:
                balanced = await self.once()
            except Exception as error:  # the strategy may be application code
                _log.error("a rebalance failed", exc_info=error)
                balanced = False
            pause_s, retry_s = (_INTERVAL_S, _UNBALANCED_S) if balanced else (retry_s, 2 * retry_s)
            if await self._wake.within(pause_s if balanced else min(pause_s, _UNBALANCED_MAX_S)):
                retry_s = _UNBALANCED_S

    async def once(self) -> bool:
        """Run one round. Returns True when the queues of every topic are known and being read."""
        topics = sorted(set(self._topics()))
        self._tried.intersection_update(topics)
        gone = [queue for queue in self._owner.owned() if queue.topic not in topics]
        await asyncio.gather(*map(self._owner.lose, gone))
        for topic in topics:
            await self._look_for(topic)
        # A broker that has not received our heartbeat does not count us among the members.
        await self._session.greet()
        balanced = [await self._balance(topic) for topic in topics]
        self._tried.update(topics)
        return all(balanced)

    async def _look_for(self, topic: str) -> None:
        try:
            await self._session.routes.get(topic)
        except RemotingError as error:
            _log.info("the route of %s: %s", topic, error)

    async def _balance(self, topic: str) -> bool:
        try:
            assigned = await self._queues_of_member(topic)
        except ClientError as error:
            # Change nothing without the facts: other members may or may not be reading our queues.
            _log.info("rebalancing %s failed: %s", topic, error)
            return False
        had = {queue for queue in self._owner.owned() if queue.topic == topic}
        await asyncio.gather(*(self._owner.lose(queue) for queue in sorted(had - assigned)))
        new = sorted(assigned - had)
        gained = await asyncio.gather(*map(self._owner.gain, new))
        if had - assigned or any(gained):
            self._events.rebalanced(topic, sum(queue.topic == topic for queue in self._owner.owned()))
            self._on_change(topic)
        return all(gained)

    async def _queues_of_member(self, topic: str) -> set[MessageQueue]:
        try:
            route = require(topic, await self._session.routes.get(topic))
        except RemotingError as error:
            raise ClientError(f"the route of {topic}: {error}") from None
        queues = sorted(subscribe_queues(topic, route))
        if self._strategy is None:
            return set(queues)
        ids = sorted(set(await self._calls.members(topic)), key=_java_order)
        return set(self._strategy(queues, ids, self._session.client_id))


def _java_order(text: str) -> bytes:
    """Return a sort key that orders texts as Java does, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
