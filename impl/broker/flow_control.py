"""Sends that are being worked on: how many there are, how large they are, and since when the oldest waits.

A send waits for the disk (SYNC_FLUSH) or for its topic to be made. When too much waits, or for too long, new
sends are refused before anything is stored. See docs/protocol.md, "Flow control".
"""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from impl.remoting.codes import ResponseCode
from impl.remoting.dispatch import RefusedError


class SendGate:
    """At most `count_max` sends and `bytes_max` bytes of bodies at once, none waiting for over `busy_ms`."""

    def __init__(self, count_max: int, bytes_max: int, busy_ms: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._busy_s = busy_ms / 1000
        self._bytes = 0
        self._tickets = itertools.count()
        self._since: dict[int, float] = {}  # ticket to loop time; the oldest first

    def __len__(self) -> int:
        return len(self._since)

    def oldest_ms(self) -> int:
        """For how long the oldest send has waited; 0 when there is none."""
        oldest = next(iter(self._since.values()), None)
        return 0 if oldest is None else round((asyncio.get_running_loop().time() - oldest) * 1000)

    @contextmanager
    def admitted(self, size: int) -> Iterator[None]:
        """While a send of that many bytes is being worked on.

        Raises:
            RefusedError: SYSTEM_BUSY; nothing was done.
        """
        now = asyncio.get_running_loop().time()
        self._require_room(size, now)
        ticket = next(self._tickets)
        self._since[ticket] = now
        self._bytes += size
        try:
            yield
        finally:
            del self._since[ticket]
            self._bytes -= size

    def _require_room(self, size: int, now: float) -> None:
        if not self._since:
            return
        if len(self._since) >= self._count_max or self._bytes + size > self._bytes_max:
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY,
                f"[OVERLOAD]system busy, start flow control for a while: {len(self._since)} sends of"
                f" {self._bytes} bytes wait",
            )
        waited_s = now - next(iter(self._since.values()))
        if waited_s > self._busy_s:
            raise RefusedError(
                ResponseCode.SYSTEM_BUSY,
                "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue:"
                f" {round(waited_s * 1000)}ms, size of queue: {len(self._since)}",
            )
