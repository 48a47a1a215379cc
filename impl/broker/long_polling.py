"""Long polling: pulls that found no message wait for one, or until their time is over.

A pull is held in the same turn of the event loop in which it found nothing, so no message can come unseen
between the two. `check` looks again from time to time: a message that was missed for an unforeseen reason is
found then, and a pull with a filter moves on over messages that it does not want.
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
    """Empty is every message."""
    owner: object
    woken: asyncio.Future[None]
    timer: asyncio.TimerHandle = field(init=False)


# Dicts for their order: a set of objects would wake them in another order in each run.
_Holds = dict[_Hold, None]


class PullHolds:
    """Held pulls by topic and queue, at most `holds_max` in all."""

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
        """Hold from now on. The future is done when a message that matches is at `offset` or behind it, when
        the owner is gone, at the latest after timeout_s."""
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
        """A message became readable just before offset_next: wake the pulls that want it."""
        holds = self._by_queue.get((topic, queue_id))
        if holds is None:
            return
        for hold in list(holds):
            if offset_next > hold.offset and (not hold.tag_codes or tags_code in hold.tag_codes):
                self._release(hold)

    def check(self, offset_next: Callable[[str, int], int]) -> None:
        """Wake the pulls in whose queue there is a message, wanted or not, at their offset."""
        for (topic, queue_id), holds in list(self._by_queue.items()):
            end = offset_next(topic, queue_id)
            for hold in [hold for hold in holds if hold.offset < end]:
                self._release(hold)

    def drop(self, owner: object) -> None:
        """Forget the holds of an owner that is gone."""
        for hold in list(self._by_owner.get(owner, ())):
            self._release(hold)

    def close(self) -> None:
        """Wake all; no pull is held after this."""
        self._is_closed = True
        for holds in list(self._by_queue.values()):
            for hold in list(holds):
                self._release(hold)

    def _release(self, hold: _Hold) -> None:
        hold.timer.cancel()
        self._count -= 1
        _take_out(self._by_queue, hold.queue, hold)
        _take_out(self._by_owner, hold.owner, hold)
        if not hold.woken.done():  # cancelled, when whoever waited was
            hold.woken.set_result(None)


def _take_out(table: dict[QueueKey, _Holds] | dict[object, _Holds], key: object, hold: _Hold) -> None:
    holds = table[key]  # type: ignore[index]  # the key is of the table
    del holds[hold]
    if not holds:
        del table[key]  # type: ignore[arg-type]
