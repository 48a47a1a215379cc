"""The background tasks of a started store: flush when a put waits, and flush and delete periodically."""

import asyncio
from collections.abc import Awaitable, Callable

from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.supervision import Supervisor
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.scrub import FIRST_PASS_MS, Scrub

Step = Callable[[], Awaitable[None]]


class BackgroundTasks:
    """The tasks of one started store. Without a `flusher`, another part makes the log durable."""

    def __init__(
        self,
        config: StoreConfig,
        flusher: LogFlusher | None,
        flush_queues: Step,
        write_checkpoint: Step,
        clean: Step,
        scrub: Scrub,
        supervisor: Supervisor,
    ) -> None:
        self._config = config
        self._flusher = flusher
        self._flush_queues = flush_queues
        self._write_checkpoint = write_checkpoint
        self._clean = clean
        self._scrub = scrub
        self._supervisor = supervisor
        self._stopping = False
        self._sleeping: set[asyncio.Future[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the tasks. This needs a running event loop."""
        config = self._config
        works = {
            "flush of the queues": self._every(config.flush_queues_interval_ms, self._flush_queues),
            "checkpoints": self._checkpoints(),
            "deletion of old files": self._every(config.clean_interval_ms, self._clean),
        }
        if config.scrub_enabled:
            works["scrub"] = self._scrubs()
        if self._flusher is not None:
            sync = config.flush_mode is FlushMode.SYNC_FLUSH
            flush = self._group_commit if sync else self._timed_flush
            works = {"flush of the log": flush(self._flusher), **works}
        self._tasks = [self._supervisor.run(name, work) for name, work in works.items()]

    async def stop(self) -> None:
        """Stop the tasks after each has finished its current step.

        The supervisor has reported those that failed.
        """
        self._stopping = True
        for sleeper in self._sleeping:
            if not sleeper.done():
                sleeper.set_result(None)
        if self._flusher is not None:
            self._flusher.wanted.set()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []

    def kill(self) -> None:
        """Cancel the tasks at once."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _group_commit(self, flusher: LogFlusher) -> None:
        """Flush as soon as a put waits (SYNC_FLUSH); all puts that arrive meanwhile share the next flush."""
        while not self._stopping:
            await flusher.wanted.wait()
            await flusher.flush()

    async def _timed_flush(self, flusher: LogFlusher) -> None:
        """Flush periodically when enough bytes are unflushed, and the rest less often (ASYNC_FLUSH)."""
        config = self._config
        rounds_to_thorough = max(1, config.flush_log_thorough_interval_ms // config.flush_log_interval_ms)
        rounds = 0
        while not await self._stopped_within(config.flush_log_interval_ms):
            rounds += 1
            if rounds >= rounds_to_thorough or flusher.unflushed_bytes >= config.flush_log_least_bytes:
                await flusher.flush()
                rounds = 0

    async def _checkpoints(self) -> None:
        """Write checkpoints periodically, the first one at once.

        The first one records the entries that this start has recovered, so that the next start need not
        recover them again.
        """
        await self._flush_queues()
        await self._write_checkpoint()
        await self._every(self._config.checkpoint_interval_ms, self._write_checkpoint)

    async def _scrubs(self) -> None:
        pause_ms = min(FIRST_PASS_MS, self._config.scrub_interval_ms)
        while not await self._stopped_within(pause_ms):
            pause_ms = await self._scrub.step()

    async def _every(self, milliseconds: int, step: Step) -> None:
        while not await self._stopped_within(milliseconds):
            await step()

    async def _stopped_within(self, milliseconds: int) -> bool:
        # A timeout around an event takes three times as long, and an idle store does little else.
        if self._stopping:
            return True
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleeping.add(sleeper)
        try:
            await upkeep.until(sleeper, milliseconds / 1000)
        finally:
            self._sleeping.discard(sleeper)
        return self._stopping
