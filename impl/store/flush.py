"""Flushing the commit log: one fsync for all waiting puts (docs/reference/protocol/storing.md, "Flush").

`LogFlusher.flush` has three steps, so that records appended during the fsync do not count as durable:

1. Record the unsynced files and the current end of the log.
2. Sync the files outside the event loop.
3. Count the log up to that end as flushed, and answer the waiting puts.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Offload
from mqproof.impl.runtime.timed_call import TimedCall
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.segments import Unsynced
from mqproof.spec.events import Kind


@dataclass(frozen=True, slots=True)
class FlushRound:
    """One fsync: when it has returned, everything before `end` is durable."""

    end: int
    store_timestamp_ms: int
    unsynced: Unsynced


class LogFlusher:
    """Makes the log durable and answers the puts that wait for it.

    `on_flushed` runs after each flush, before the waiting puts are answered; `on_error` runs when a flush
    fails.
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
        self._waiting: deque[tuple[int, TimedCall[bool]]] = deque()  # by log end, ascending

    @property
    def unflushed_bytes(self) -> int:
        return self._log.end - self._log.flushed

    async def flush(self) -> None:
        """Make the current content of the log durable. A disk error goes to `on_error`, not to the caller."""
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
        """Start a round: record the unsynced files and the current end of the log.

        Records appended during the fsync are not covered.
        """
        log = self._log
        return FlushRound(log.end, log.store_timestamp_ms, log.take_unsynced())

    def round_done(self, flush_round: FlushRound) -> None:
        """Complete a round after its fsync returned: its records are durable."""
        self._log.flushed = flush_round.end
        self._log.flushed_timestamp_ms = flush_round.store_timestamp_ms
        if self._events is not None:
            self._events.emit(Kind.FLUSH, commit_offset=flush_round.end, attrs={"file": "log"})
        self._on_flushed()
        self._answer()

    def round_failed(self, error: OSError) -> None:
        """Fail a round after its fsync failed.

        Nothing counts as flushed, and no later fsync can change that, because the operating system may have
        dropped the pages. Each waiting put is answered as not durable.
        """
        self._failed = True
        self._on_error(error)
        self._answer()

    def want(self, end: int) -> None:
        """Request a flush up to the commit offset, without waiting for it."""
        self._wanted_end = max(self._wanted_end, end)
        self.wanted.set()

    def when_durable(self, end: int, timeout_ms: int, call: Callable[[bool], None]) -> None:
        """Call the function once the log is durable up to the commit offset, or with False.

        False means a timeout or a failure. If the log is durable already, the function is called before this
        method returns.
        """
        if self._log.flushed >= end:
            call(True)
            return
        self._waiting.append((end, TimedCall(call, timeout_ms / 1000, False)))
        self.want(end)

    def forget_waits(self) -> None:
        """Call no function any more."""
        for _, wait in self._waiting:
            wait.cancel()

    def _answer(self) -> None:
        """Answer the waits whose records are durable and, after a failure, all others as not durable.

        They are answered together, after the next round has begun its fsync.
        """
        ended = []
        while self._waiting and (self._failed or self._waiting[0][0] <= self._log.flushed):
            ended.append(self._waiting.popleft())
        if ended:
            asyncio.get_running_loop().call_soon(_resolve, ended, self._log.flushed)
        if self._failed or self._log.flushed >= self._wanted_end:
            self.wanted.clear()


def _resolve(waits: list[tuple[int, TimedCall[bool]]], flushed: int) -> None:
    for end, wait in waits:
        wait.end(end <= flushed)
