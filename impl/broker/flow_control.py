"""Flow control for sends: how many are in progress, how large they are, and how long the oldest has waited.

A send waits for the disk (SYNC_FLUSH) or for the creation of its topic. When too many sends wait, or one
waits for too long, new sends are refused before anything is stored. See docs/reference/protocol/sending.md,
"Flow control".
"""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError

TOOK_MS: Final = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
"""The upper bounds of the intervals in which RocketMQ reports the time that storing takes."""


class SendGate:
    """Limits the sends in progress to `count_max` sends and `bytes_max` bytes of bodies.

    New sends are refused while the oldest one has waited longer than `busy_ms`.

    A send is always admitted when no other one is in progress.
    """

    def __init__(self, count_max: int, bytes_max: int, busy_ms: int, now_s: Callable[[], float]) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._busy_s = busy_ms / 1000
        self._bytes = 0
        self._tickets = itertools.count()
        self._now_s = now_s
        self._waiting: dict[int, tuple[float, int]] = {}  # by ticket: start time and size; oldest first
        self._none_before_s = 0.0
        """No send in progress started before this time."""
        self.took = [0] * (len(TOOK_MS) + 1)
        """The number of sends in each interval of TOOK_MS; the last entry counts those that took longer."""
        self.took_ms_max = 0
        self.refused_full = 0
        """The number of sends refused because too many others were in progress."""
        self.refused_slow = 0
        """The number of sends refused because the oldest one had waited for too long."""

    def __len__(self) -> int:
        return len(self._waiting)

    def oldest_ms(self) -> int:
        """Return how long the oldest send has waited; 0 when there is none."""
        if not self._waiting:
            return 0
        since_s, _ = next(iter(self._waiting.values()))
        return round((self._now_s() - since_s) * 1000)

    @contextmanager
    def admitted(self, size: int) -> Iterator[None]:
        """Return a context in which a send of that many bytes is in progress.

        Raises RefusedError as `enter`.
        """
        ticket = self.enter(size)
        try:
            yield
        finally:
            self.leave(ticket)

    def enter(self, size: int) -> int:
        """Start a send of that many bytes; return the ticket for `leave`.

        Raises:
            RefusedError: SYSTEM_BUSY; nothing was done.
        """
        now = self._now_s()
        self._require_room(size, now)
        ticket = next(self._tickets)
        self._waiting[ticket] = now, size
        self._bytes += size
        return ticket

    def leave(self, ticket: int) -> None:
        """End a send after it was answered."""
        since_s, size = self._waiting.pop(ticket)
        self._bytes -= size
        took_ms = int((self._now_s() - since_s) * 1000)
        self.took[bisect_left(TOOK_MS, took_ms)] += 1
        if took_ms > self.took_ms_max:
            self.took_ms_max = took_ms

    def _require_room(self, size: int, now: float) -> None:
        if not self._waiting:
            self._none_before_s = now
            return
        if len(self._waiting) >= self._count_max or self._bytes + size > self._bytes_max:
            self.refused_full += 1
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD]system busy, start flow control for a while: {len(self._waiting)} sends of"
                f" {self._bytes} bytes wait",
            )
        if now - self._none_before_s <= self._busy_s:
            return
        self._none_before_s, _ = next(iter(self._waiting.values()))
        waited_s = now - self._none_before_s
        if waited_s > self._busy_s:
            self.refused_slow += 1
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY,
                "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue:"
                f" {round(waited_s * 1000)}ms, size of queue: {len(self._waiting)}",
            )
