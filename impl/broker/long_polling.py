"""Long polling: a pull that found no message waits for one, or until its time is over.

A pull is held in the same turn of the event loop in which it found nothing, so that no message can arrive
between the two. `check` is called periodically. It finds a message whose arrival was not notified for an
unforeseen reason. It also lets a pull with a filter move on over messages that the filter excludes.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

QueueKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class _Hold:
    queue: QueueKey
    offset: int
    tag_codes: Collection[int]
    """The wanted tag codes; empty means every message."""
    owner: object
    woken: asyncio.Future[None]
    timer: asyncio.TimerHandle = field(init=False)


# Dicts because they keep their order: a set of objects would wake the pulls in a different order in each run.
_Holds = dict[_Hold, None]


class PullHolds:
    """Held pulls by topic and queue, at most `holds_max` in total."""

    def __init__(self, holds_max: int = 100_000) -> None:
        self.holds_max = holds_max
        self._count = 0
        self._by_queue: dict[QueueKey, _Holds] = {}
        self._by_owner: dict[object, _Holds] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= self.holds_max

    def hold(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        tag_codes: Collection[int],
        timeout_s: float,
        owner: object = None,
    ) -> asyncio.Future[None]:
        """Hold a pull from now on; return a future that is done when the hold ends.

        A hold ends when a matching message arrives at `offset` or later, when the owner is dropped, or after
        timeout_s.
        """
        loop = asyncio.get_running_loop()
        hold = _Hold((topic, queue_id), offset, tag_codes, owner, loop.create_future())
        if self._is_closed:
            hold.woken.set_result(None)
            return hold.woken
        hold.timer = loop.call_later(timeout_s, self._release, hold)
        self._by_queue.setdefault(hold.queue, {})[hold] = None
        self._by_owner.setdefault(owner, {})[hold] = None
        self._count += 1
        return hold.woken

    def arrived(self, topic: str, queue_id: int, offset_next: int, tags_code: int) -> None:
        """Wake the matching pulls, after a message became readable just before `offset_next`."""
        holds = self._by_queue.get((topic, queue_id))
        if holds is None:
            return
        for hold in list(holds):
            if offset_next > hold.offset and (not hold.tag_codes or tags_code in hold.tag_codes):
                self._release(hold)

    def check(self, offset_next: Callable[[str, int], int]) -> None:
        """Wake the pulls whose queue has a message at their offset, whether it matches or not."""
        for (topic, queue_id), holds in list(self._by_queue.items()):
            end = offset_next(topic, queue_id)
            for hold in [hold for hold in holds if hold.offset < end]:
                self._release(hold)

    def drop(self, owner: object) -> None:
        """Release the holds of an owner whose connection has ended."""
        for hold in list(self._by_owner.get(owner, ())):
            self._release(hold)

    def close(self) -> None:
        """Wake all held pulls; no pull is held after this."""
        self._is_closed = True
        for holds in list(self._by_queue.values()):
            for hold in list(holds):
                self._release(hold)

    def _release(self, hold: _Hold) -> None:
        hold.timer.cancel()
        self._count -= 1
        _take_out(self._by_queue, hold.queue, hold)
        _take_out(self._by_owner, hold.owner, hold)
        if not hold.woken.done():  # cancelled when the waiting coroutine was
            hold.woken.set_result(None)


def _take_out(table: dict[QueueKey, _Holds] | dict[object, _Holds], key: object, hold: _Hold) -> None:
    holds = table[key]  # type: ignore[index]  # the key belongs to this table
    del holds[hold]
    if not holds:
        del table[key]  # type: ignore[arg-type]
