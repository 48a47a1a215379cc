"""The queues that brokers have locked for us, so that no other member of the group consumes them.

See docs/protocol.md, "Queue locks".
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from mqproof.impl.client.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue

_log = logging.getLogger(__name__)

RENEWAL_S: Final = 20.0
LIFE_S: Final = 30.0
"""After the last renewal we do not count on a lock; the broker gives it away 30 s later."""


class QueueLocks:
    """Locks that are ours, and when that was last confirmed."""

    def __init__(self, calls: GroupRequests) -> None:
        self._calls = calls
        self._confirmed_s: dict[MessageQueue, float] = {}
        self._renewed = asyncio.Event()
        self._renewed.set()

    def holds(self, queue: MessageQueue) -> bool:
        """Whether nobody else can be consuming the queue."""
        return _now_s() - self._confirmed_s.get(queue, -LIFE_S) < LIFE_S

    def confirmed_s(self, queue: MessageQueue) -> float | None:
        """Loop time when the broker last confirmed the lock."""
        return self._confirmed_s.get(queue)

    async def lock(self, queue: MessageQueue) -> bool:
        """False when somebody else has it, or the broker cannot be asked."""
        try:
            ours = await self._ask([queue])
        except ClientError as error:
            _log.info("no lock: %s", error)
            return False
        return queue in ours

    async def renew(self) -> list[MessageQueue]:
        """Renew all locks. Returns the queues that are somebody else's now, which are no longer held."""
        self._renewed.clear()
        try:
            lost = await asyncio.gather(*map(self._renew, self._by_broker(self._confirmed_s)))
        finally:
            self._renewed.set()
        return [queue for each in lost for queue in each]

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Give locks up; a broker that does not hear of it waits until they are old."""
        # A renewal that is under way would take them once more, and be believed.
        await self._renewed.wait()
        ours = [queue for queue in queues if self._confirmed_s.pop(queue, None) is not None]
        for of_broker in self._by_broker(ours):
            try:
                await self._calls.unlock(of_broker)
            except ClientError as error:
                _log.info("not unlocked: %s", error)

    async def unlock_all(self) -> None:
        """As unlock, whatever we hold."""
        await self.unlock(list(self._confirmed_s))

    async def _renew(self, queues: Collection[MessageQueue]) -> list[MessageQueue]:
        try:
            ours = await self._ask(queues)
        except ClientError as error:
            _log.warning("locks are not renewed: %s", error)
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
        asked_s = _now_s()  # from then on the broker counts, at the earliest
        ours = await self._calls.lock(queues)
        for queue in ours:
            self._confirmed_s[queue] = asked_s
        return ours


def _now_s() -> float:
    return asyncio.get_running_loop().time()
