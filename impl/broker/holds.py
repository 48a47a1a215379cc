"""Long polling: pulls that found nothing and wait for a message, or for their time to run out."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class _Hold:
    offset: int
    tag_codes: Collection[int]
    """Empty is every message."""
    woken: asyncio.Future[None]


class PullHolds:
    """Held pulls by topic and queue, at most `holds_max` in all."""

    def __init__(self, holds_max: int = 100_000) -> None:
        self._holds_max = holds_max
        self._count = 0
        self._by_queue: dict[tuple[str, int], dict[_Hold, None]] = {}
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        return self._count >= self._holds_max

    async def wait(
        self, topic: str, queue_id: int, offset: int, tag_codes: Collection[int], timeout_s: float
    ) -> None:
        """Return when a message that matches is at `offset` or behind it, at the latest after timeout_s."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        hold = _Hold(offset, tag_codes, loop.create_future())
        # A dict for its order: a set of objects would wake them in another order in each run.
        holds = self._by_queue.setdefault((topic, queue_id), {})
        holds[hold] = None
        self._count += 1
        timer = loop.call_later(timeout_s, _wake, hold)
        try:
            await hold.woken
        finally:
            timer.cancel()
            self._count -= 1
            del holds[hold]
            if not holds:
                del self._by_queue[topic, queue_id]

    def arrived(self, topic: str, queue_id: int, offset_next: int, tags_code: int) -> None:
        """A message became readable just before offset_next: wake the pulls that want it."""
        for hold in self._by_queue.get((topic, queue_id), ()):
            if offset_next > hold.offset and (not hold.tag_codes or tags_code in hold.tag_codes):
                _wake(hold)

    def close(self) -> None:
        """Wake all; from now on nobody is held."""
        self._is_closed = True
        for holds in self._by_queue.values():
            for hold in holds:
                _wake(hold)


def _wake(hold: _Hold) -> None:
    if not hold.woken.done():
        hold.woken.set_result(None)
