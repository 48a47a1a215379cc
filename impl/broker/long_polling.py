"""Long polling: a pull that found no message waits for one, or until its time is over.

A pull is held in the same turn of the event loop in which it found nothing, so that no message can arrive
between the two. `check` is called periodically. It finds a message whose arrival was not notified for an
unforeseen reason. It also lets a pull with a filter move on over messages that the filter excludes.

One message may wake a hundred thousand pulls. Each turn of the event loop looks at a limited number of them
and wakes a limited number, so that other requests do not wait. While few pulls are held, all is done at once.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from mqproof.impl.remoting.budget import Budget, Peer, Percentages, shares_of
from mqproof.impl.runtime import upkeep

QueueKey = tuple[str, int]

HOLDS_MAX: Final = 100_000

_WOKEN_PER_TURN: Final = 16
"""The most pulls that are woken in one turn; each then reads the store and sends an answer."""
_FEW: Final = 16
"""The most pulls of one queue that a check compares at once, without a pass over them."""
_SEEN_PER_TURN: Final = 2000
"""The most held pulls, or queues, that are looked at in one turn."""
_CODES_MAX: Final = 1000
"""The most tag codes that are remembered for the pulls of one queue; with more, all its pulls are woken."""
_TICKS_PER_S: Final = 100
"""Holds that end in the same hundredth of a second share a timer."""

_ANY: Final = None
"""Stands for every tag code."""


@dataclass(slots=True, eq=False)
class _Hold:
    queue: QueueKey
    offset: int
    tag_codes: Collection[int]
    """The wanted tag codes; empty means every message."""
    owner: Peer | None
    woken: asyncio.Future[None]
    ends_at: int
    """The end of its time, in ticks of the time of upkeep."""
    is_held: bool = field(default=True)


# Dicts because they keep their order: a set of objects would wake the pulls in a different order in each run.
_Holds = dict[_Hold, None]

_Arrivals = dict[int | None, int]
"""The highest next offset of the messages with each tag code that have arrived at a queue."""


class PullHolds:
    """Held pulls by topic and queue. `budget` limits their number, in total and for each owner."""

    def __init__(self, holds_max: int = HOLDS_MAX, percent: Percentages | None = None) -> None:
        self.budget = Budget("held pulls", shares_of(holds_max, percent or Percentages()))
        self._count = 0
        self._by_queue: dict[QueueKey, _Holds] = {}
        self._by_owner: dict[Peer | None, _Holds] = {}
        self._by_end: dict[int, tuple[_Holds, asyncio.TimerHandle]] = {}
        self._arrivals: dict[QueueKey, _Arrivals] = {}
        """What the pulls of each queue have still to be compared with."""
        self._work: deque[Iterator[_Hold | None]] = deque()
        """Each yields the pulls to wake, and None for one that stays held."""
        self._next_turn: asyncio.Handle | None = None
        self._is_working = False
        self._is_closed = False

    def __len__(self) -> int:
        return self._count

    @property
    def holds_max(self) -> int:
        return self.budget.limits.total

    def hold(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        tag_codes: Collection[int],
        timeout_s: float,
        owner: Peer | None = None,
    ) -> asyncio.Future[None]:
        """Hold a pull from now on; return a future that is done when the hold ends.

        A hold ends when a matching message arrives at `offset` or later, when the owner is dropped, or after
        timeout_s. Ask the budget first.
        """
        loop = asyncio.get_running_loop()
        ends_at = math.ceil(round((upkeep.now_s(loop) + timeout_s) * _TICKS_PER_S, 3))
        hold = _Hold((topic, queue_id), offset, tag_codes, owner, loop.create_future(), ends_at)
        if self._is_closed:
            hold.woken.set_result(None)
            return hold.woken
        if ends_at not in self._by_end:
            timer = upkeep.call_at(ends_at / _TICKS_PER_S, self._end, ends_at)
            self._by_end[ends_at] = {}, timer
        self._by_end[ends_at][0][hold] = None
        self._by_queue.setdefault(hold.queue, {})[hold] = None
        self._by_owner.setdefault(owner, {})[hold] = None
        self._count += 1
        if owner is not None:
            self.budget.take(owner)
        return hold.woken

    def arrived(self, topic: str, queue_id: int, offset_next: int, tags_code: int) -> None:
        """Wake the matching pulls, after a message became readable just before `offset_next`."""
        if (topic, queue_id) in self._by_queue:
            self._arrive((topic, queue_id), offset_next, tags_code)

    def check(self, offset_next: Callable[[str, int], int]) -> None:
        """Wake the pulls whose queue has a message at their offset, whether it matches or not."""
        self._do(self._checked(list(self._by_queue), offset_next))

    def drop(self, owner: Peer) -> None:
        """Release the holds of an owner whose connection has ended."""
        self._do(_one_by_one(self._by_owner.get(owner, {})))

    def close(self) -> None:
        """Wake all held pulls; no pull is held after this."""
        self._is_closed = True
        if self._next_turn is not None:
            self._next_turn.cancel()
        for holds in list(self._by_queue.values()):
            for hold in list(holds):
                self._release(hold)

    # Work that is spread over turns of the event loop.

    def _end(self, tick: int) -> None:
        holds, _ = self._by_end.pop(tick)
        self._do(_one_by_one(holds))

    def _arrive(self, queue: QueueKey, offset_next: int, tags_code: int | None) -> None:
        arrivals = self._arrivals.get(queue)
        if arrivals is None:
            self._arrivals[queue] = {tags_code: offset_next}
            self._do(self._matching(queue))
            return
        # A pass over the queue is going on, or waits for its turn; another one follows.
        code = tags_code if len(arrivals) < _CODES_MAX else _ANY
        arrivals[code] = max(offset_next, arrivals.get(code, 0))

    def _matching(self, queue: QueueKey) -> Iterator[_Hold | None]:
        """Compare the pulls of a queue with what has arrived, until nothing new has arrived meanwhile."""
        while arrivals := self._arrivals.get(queue):
            self._arrivals[queue] = {}
            end = max(arrivals.values())
            for hold in _one_by_one(self._by_queue.get(queue, {})):
                yield hold if hold.offset < end and _matches(hold, arrivals) else None
        del self._arrivals[queue]

    def _checked(
        self, queues: list[QueueKey], offset_next: Callable[[str, int], int]
    ) -> Iterator[_Hold | None]:
        for queue in queues:
            end, holds = offset_next(*queue), self._by_queue.get(queue, {})
            if len(holds) > _FEW:
                self._arrive(queue, end, _ANY)
            else:
                for hold in holds:  # mostly there is one, for which `any` with a generator takes longer
                    if hold.offset < end:
                        self._arrive(queue, end, _ANY)
                        break
            yield None

    def _do(self, work: Iterator[_Hold | None]) -> None:
        self._work.append(work)
        if self._next_turn is None and not self._is_working:
            self._turn()

    def _turn(self) -> None:
        self._is_working = True
        try:
            self._wake_some()
            self._work.rotate(-1)  # a queue with very many pulls must not delay the others
        finally:  # an error in one piece of work must not stop the others
            self._is_working = False
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn) if self._work else None

    def _wake_some(self) -> None:
        woken = seen = 0
        while self._work and woken < _WOKEN_PER_TURN and seen < _SEEN_PER_TURN:
            seen += 1
            try:
                hold = next(self._work[0])
            except StopIteration:
                self._work.popleft()
                continue
            if hold is not None and hold.is_held:
                self._release(hold)
                woken += 1

    def _release(self, hold: _Hold) -> None:
        hold.is_held = False
        self._count -= 1
        if hold.owner is not None:
            self.budget.take(hold.owner, -1)
        _take_out(self._by_queue, hold.queue, hold)
        _take_out(self._by_owner, hold.owner, hold)
        holds, timer = self._by_end.get(hold.ends_at, (None, None))
        if holds is not None and timer is not None:
            holds.pop(hold, None)  # a later hold may have the same end, after the timer of this one has fired
            if not holds:
                timer.cancel()
                del self._by_end[hold.ends_at]
        if not hold.woken.done():  # cancelled when the waiting coroutine was
            hold.woken.set_result(None)


def _one_by_one(holds: _Holds) -> Iterator[_Hold]:
    """Yield the pulls that are held now, and keep none that was yielded.

    A list would free them all in one turn at its end: 100,000 took 40 ms.
    """
    left = deque(holds)
    return (left.popleft() for _ in range(len(left)))


def _matches(hold: _Hold, arrivals: _Arrivals) -> bool:
    if not hold.tag_codes:
        return True
    return any(
        end > hold.offset and (code is _ANY or code in hold.tag_codes) for code, end in arrivals.items()
    )


def _take_out(table: dict[QueueKey, _Holds] | dict[Peer | None, _Holds], key: object, hold: _Hold) -> None:
    holds = table[key]  # type: ignore[index]  # the key belongs to this table
    del holds[hold]
    if not holds:
        del table[key]  # type: ignore[arg-type]
