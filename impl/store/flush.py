"""Flushing the commit log: one fsync for all who wait for it (docs/protocol.md, "Flush").

`LogFlusher.flush` has three steps, so that records appended while the fsync runs are not taken for durable:
take what is unsynced and where the log ends now; sync it, outside the event loop; count that as flushed and
tell who waits.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Offload
from mqproof.impl.store.commit_log import CommitLog
from mqproof.impl.store.segments import Unsynced
from mqproof.spec.events import Kind


@dataclass(frozen=True, slots=True)
class FlushRound:
    """One fsync: when it has returned, everything before `end` is durable."""

    end: int
    store_timestamp_ms: int
    unsynced: Unsynced


class LogFlusher:
    """Makes the log durable and answers those who wait for it.

    `on_flushed` runs after each flush, before anybody is answered; `on_error` when the disk refused one.
    """

    def __init__(
        self,
        log: CommitLog,
        offload: Offload,
        events: EventLog | None,
        on_flushed: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self.wanted = asyncio.Event()
        """Set while a flush is wanted."""
        self._log = log
        self._offload = offload
        self._events = events
        self._on_flushed = on_flushed
        self._on_error = on_error
        self._wanted_end = 0
        self._failed = False
        self._one_round = asyncio.Lock()
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()  # by log end, ascending

    @property
    def unflushed_bytes(self) -> int:
        return self._log.end - self._log.flushed

    async def flush(self) -> None:
        """Make durable what is in the log now. A disk error goes to `on_error`, not to the caller."""
        async with self._one_round:
            if self._failed or self.unflushed_bytes == 0:
                self._answer()
                return
            flush_round = self.begin_round()
            try:
                await self._offload(flush_round.unsynced.sync)
            except OSError as error:
                self.round_failed(error)
            else:
                self.round_done(flush_round)

    def begin_round(self) -> FlushRound:
        """Take what is to be synced. The end is taken now: what is appended during the fsync is not
        covered."""
        log = self._log
        return FlushRound(log.end, log.store_timestamp_ms, log.take_unsynced())

    def round_done(self, flush_round: FlushRound) -> None:
        """The fsync returned: the round's records are durable."""
        self._log.flushed = flush_round.end
        self._log.flushed_timestamp_ms = flush_round.store_timestamp_ms
        if self._events is not None:
            self._events.emit(Kind.FLUSH, commit_offset=flush_round.end, attrs={"file": "log"})
        self._on_flushed()
        self._answer()

    def round_failed(self, error: OSError) -> None:
        """The fsync failed. Nothing counts as flushed, and no later fsync can change that: the operating
        system may have dropped the pages. Whoever waits is told that durability is not known."""
        self._failed = True
        self._on_error(error)
        self._answer()

    def want(self, end: int) -> None:
        """Ask for a flush up to the commit offset, without waiting for it."""
        self._wanted_end = max(self._wanted_end, end)
        self.wanted.set()

    async def wait_durable(self, end: int, timeout_ms: int) -> bool:
        """Wait until the log is durable up to the commit offset; False when it took too long or failed."""
        if self._log.flushed >= end:
            return True
        loop = asyncio.get_running_loop()
        durable: asyncio.Future[bool] = loop.create_future()
        deadline = loop.call_later(timeout_ms / 1000, _resolve, durable, False)
        self._waiting.append((end, durable))
        self.want(end)
        try:
            return await durable
        finally:
            deadline.cancel()

    def _answer(self) -> None:
        """Answer those whose records are durable, and after a failure all others too: not durable."""
        while self._waiting and (self._failed or self._waiting[0][0] <= self._log.flushed):
            end, durable = self._waiting.popleft()
            _resolve(durable, end <= self._log.flushed)
        if self._failed or self._log.flushed >= self._wanted_end:
            self.wanted.clear()


def _resolve(durable: "asyncio.Future[bool]", value: bool) -> None:
    if not durable.done():
        durable.set_result(value)
