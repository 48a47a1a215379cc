"""The queues that brokers have locked for this client, so that no other member of the group consumes them.

See docs/reference/protocol/groups.md, "Queue locks".
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue
from mqproof.impl.runtime import upkeep

_log = logging.getLogger(__name__)

RENEWAL_S: Final = 20.0
LIFE_S: Final = 30.0
"""How long a lock is trusted after its last renewal. The broker releases it 30 s later than that."""


class QueueLocks:
    """The locks of this client, and when the broker last confirmed each."""

    def __init__(self, calls: GroupRequests) -> None:
        self._calls = calls
        self._confirmed_s: dict[MessageQueue, float] = {}
        self._renewed = asyncio.Event()
        self._renewed.set()

    def holds(self, queue: MessageQueue) -> bool:
        """Return whether the lock excludes all other clients from consuming the queue."""
        return _now_s() - self._confirmed_s.get(queue, -LIFE_S) < LIFE_S

    def confirmed_s(self, queue: MessageQueue) -> float | None:
        """Return the time of upkeep when the broker last confirmed the lock."""
        return self._confirmed_s.get(queue)

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock the queue. Returns False if another client has locked it, or the request failed."""
        try:
            ours = await self._ask([queue])
        except ClientError as error:
            _log.info("a queue was not locked: %s", error)
            return False
        return queue in ours

    async def renew(self) -> list[MessageQueue]:
        """Renew all locks. Returns the queues whose locks were lost to another client."""
        self._renewed.clear()
        try:
            lost = await asyncio.gather(*map(self._renew, self._by_broker(self._confirmed_s)))
        finally:
            self._renewed.set()
        return [queue for each in lost for queue in each]

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Release the locks of these queues.

        If the request to a broker fails, the lock stays until it expires.
        """
        # A renewal in progress would take the locks again, and this client would record them as its own.
        await self._renewed.wait()
        ours = [queue for queue in queues if self._confirmed_s.pop(queue, None) is not None]
        for of_broker in self._by_broker(ours):
            try:
                await self._calls.unlock(of_broker)
            except ClientError as error:
                _log.info("a queue was not unlocked: %s", error)

    async def unlock_all(self) -> None:
        """Release all locks."""
        await self.unlock(list(self._confirmed_s))

    async def _renew(self, queues: Collection[MessageQueue]) -> list[MessageQueue]:
        try:
            ours = await self._ask(queues)
        except ClientError as error:
            _log.warning("locks were not renewed: %s", error)
            return []
        lost = sorted(set(queues) - ours)
        for queue in lost:
            self._confirmed_s.pop(queue, None)
        return lost

    def _by_broker(self, queues: Iterable[MessageQueue]) -> Collection[list[MessageQueue]]:
        found: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            found[queue.broker_name].append(queue)
        return found.values()

    async def _ask(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        asked_s = _now_s()  # the broker's expiry time starts at this moment at the earliest
        ours = await self._calls.lock(queues)
        for queue in ours:
            self._confirmed_s[queue] = asked_s
        return ours


def _now_s() -> float:
    return upkeep.now_s()
