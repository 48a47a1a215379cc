"""Flushing of the consume queues and the index, and the checkpoint that records it for the next recovery.

The order matters (docs/reference/protocol/storing.md, "Checkpoint"): first determine how far dispatch has
come, then sync, then write the checkpoint with the determined position.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mqproof.impl.runtime.disk import Disk, is_out_of_space
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Offload
from mqproof.impl.store.dispatch import Dispatcher
from mqproof.impl.store.files.checkpoint import DISTRUST, Checkpoint, QueueCount, write_checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueues
from mqproof.impl.store.files.index import Index, IndexState
from mqproof.impl.store.files.segments import sync_all
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)


class QueueFlusher:
    """Flushes all queues together. A disk error goes to `on_error`; do not flush again after one."""

    def __init__(
        self,
        queues: ConsumeQueues,
        dispatcher: Dispatcher,
        offload: Offload,
        events: EventLog | None,
        on_error: Callable[[OSError], None],
    ) -> None:
        self.position = 0
        """Commit offset up to which this process knows all entries to be durable."""
        self.store_timestamp_ms = 0
        """Store time of the last record whose entry is durable."""
        self._queues = queues
        self._dispatcher = dispatcher
        self._offload = offload
        self._events = events
        self._on_error = on_error
        self._one_flush = asyncio.Lock()

    async def flush(self) -> None:
        """Make the entries dispatched so far durable."""
        # One at a time: a second flush would report entries as durable that the first has taken but not
        # synced.
        async with self._one_flush:
            await self._flush()

    async def _flush(self) -> None:
        # Determined before the fsync: entries dispatched during the fsync are not covered.
        position, timestamp_ms = self._dispatcher.position, self._dispatcher.store_timestamp_ms
        unsynced = self._queues.take_unsynced()
        if not unsynced:
            return
        try:
            await self._offload(lambda: sync_all(unsynced))
        except OSError as error:
            self._on_error(error)
            return
        self.position, self.store_timestamp_ms = position, timestamp_ms
        if self._events is not None:
            self._events.emit(Kind.FLUSH, commit_offset=position, attrs={"file": "queues"})


class IndexFlusher:
    """Flushes the index. A disk error goes to `on_error`; do not flush again after one."""

    def __init__(
        self,
        index: Index | None,
        log: CommitLog,
        flush_log: Callable[[], Awaitable[None]],
        offload: Offload,
        on_error: Callable[[OSError], None],
    ) -> None:
        self.state: IndexState | None = None
        """The durable state of the index; None while this process does not know it."""
        self.full_until_ms = 0
        """Store time of the last entry in the last full file that is durable."""
        self._index = index
        self._log = log
        self._flush_log = flush_log
        self._offload = offload
        self._on_error = on_error
        self._one_flush = asyncio.Lock()

    async def flush(self) -> None:
        """Make the current index durable, and the log before it.

        If the index had entries beyond the log, recovery would have to rebuild a whole file.
        """
        if self._index is not None:
            async with self._one_flush:
                await self._flush(self._index)

    async def _flush(self, index: Index) -> None:
        state, full_until_ms = index.state(), index.full_until_ms
        if state == self.state:
            return
        try:
            unsynced = index.take_unsynced()
            await self._flush_log()
            if self._log.flushed < state.position:
                return
            await self._offload(unsynced.sync)
        except OSError as error:
            self._on_error(error)
            return
        self.state, self.full_until_ms = state, full_until_ms


class CheckpointWriter:
    """Keeps the checkpoint file up to date with what is durable."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        log: CommitLog,
        queues: ConsumeQueues,
        queue_flusher: QueueFlusher,
        index_flusher: IndexFlusher,
        offload: Offload,
        events: EventLog | None,
        on_error: Callable[[OSError], None],
    ) -> None:
        self._disk = disk
        self._path = path
        self._log = log
        self._queues = queues
        self._queue_flusher = queue_flusher
        self._index_flusher = index_flusher
        self._offload = offload
        self._events = events
        self._on_error = on_error
        self._written = Checkpoint()
        self.is_late = False
        """Whether the file is older than the store, because the last attempt found no space on the disk."""
        self._one_write = asyncio.Lock()

    def recovered(self, checkpoint: Checkpoint) -> None:
        """Set the checkpoint that was read at load: only the queue entries it covers count as durable."""
        self._written = checkpoint
        # Not later than the count reaches: the counted part and the trusted part must meet.
        self._queue_flusher.store_timestamp_ms = min(
            checkpoint.log_timestamp_ms, checkpoint.queues_timestamp_ms
        )

    def distrust_queues(self) -> None:
        """Make every recovery dispatch the whole log again, until the next checkpoint.

        Raises OSError: the file then has its old content.
        """
        distrusting = replace(self._written, queue_count=DISTRUST)
        write_checkpoint(self._disk, self._path, distrusting)
        self._written = distrusting

    def restore(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint that was read at load again: a start that was refused changes nothing.

        Raises OSError: the file then has its present content.
        """
        if self._written != checkpoint:
            write_checkpoint(self._disk, self._path, checkpoint)

    def count_again(self) -> None:
        """Mark the count as outdated after queues were removed, so that the next checkpoint counts again."""
        self._written = replace(self._written, queue_count=None)

    def allows_to_forget(self, begin: int) -> bool:
        """Return whether the file's count covers no entry of a record before the commit offset, above 0.

        DISTRUST begins at 0.
        """
        count = self._written.queue_count
        return count is not None and count.begin >= begin

    def allows_to_remove(self, begin: int) -> bool:
        """Return whether no start would miss the segments of the log before the commit offset."""
        count = self._written.queue_count
        return count is None or count == DISTRUST or count.begin >= begin

    async def write(self) -> None:
        """Replace the file if the checkpoint has changed."""
        async with self._one_write:
            await self._write()

    async def _write(self) -> None:
        position = self._position()
        try:
            checkpoint = self.checkpoint_now()
            if checkpoint == self._written:
                return
            await self._offload(lambda: write_checkpoint(self._disk, self._path, checkpoint))
        except OSError as error:
            self._failed(error)
            return
        self._written, self.is_late = checkpoint, False
        if self._events is not None:
            self._events.emit(Kind.FLUSH, commit_offset=position, attrs={"file": "checkpoint"})

    def _failed(self, error: OSError) -> None:
        """Report that the checkpoint was not written.

        Without space for the new file, the old one stays, and is right: a recovery only has more to do. So
        this is tried again. After any other error it is not known what the disk keeps.
        """
        if not is_out_of_space(error):
            self._on_error(error)
        elif not self.is_late:
            self.is_late = True
            _log.warning("the checkpoint is not written, and this is tried again: %s", error)

    def checkpoint_now(self) -> Checkpoint:
        """Return the checkpoint of what is known to be durable, never of what was merely written."""
        return Checkpoint(
            self._log.flushed_timestamp_ms,
            self._queue_flusher.store_timestamp_ms,
            self._index_flusher.full_until_ms,
            self._count_now(),
            self._index_flusher.state,
        )

    def _count_now(self) -> QueueCount | None:
        begin, position, known = self._log.begin, self._position(), self._written.queue_count
        if position == 0 or (known is not None and (known.begin, known.position) == (begin, position)):
            return known
        return QueueCount(begin, position, self._queues.count_between(begin, position))

    def _position(self) -> int:
        """Return the commit offset before which log and queues are durable; 0 before the first flush."""
        return min(self._log.flushed, self._queue_flusher.position)
