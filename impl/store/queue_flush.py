"""Making the consume queues durable, and the checkpoint that tells the next recovery so.

The order is what counts (docs/protocol.md, "Checkpoint"): first note how far dispatch has come, then sync,
then write down what was noted.
"""

from collections.abc import Callable

from impl.event_log import EventLog
from impl.runtime.disk import Disk
from impl.runtime.runtime import Offload
from impl.store.checkpoint import Checkpoint, write_checkpoint
from impl.store.commit_log import CommitLog
from impl.store.consume_queue import ConsumeQueues
from impl.store.dispatch import Dispatcher
from impl.store.segments import sync_all
from spec.events import Kind


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
        """Commit offset up to which all entries are durable, as far as known in this life."""
        self.store_timestamp_ms = 0
        """Store time of the last record whose entry is durable."""
        self._queues = queues
        self._dispatcher = dispatcher
        self._offload = offload
        self._events = events
        self._on_error = on_error

    async def flush(self) -> None:
        """Make the entries dispatched so far durable."""
        # Noted before the fsync: what is dispatched while it runs is not covered.
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


class CheckpointWriter:
    """Keeps the checkpoint file up to date with what is durable."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        log: CommitLog,
        queue_flusher: QueueFlusher,
        offload: Offload,
        events: EventLog | None,
        on_error: Callable[[OSError], None],
    ) -> None:
        self._disk = disk
        self._path = path
        self._log = log
        self._queue_flusher = queue_flusher
        self._offload = offload
        self._events = events
        self._on_error = on_error
        self._written = Checkpoint()

    def recovered(self, checkpoint: Checkpoint) -> None:
        """What the file says after recovery; of the queues no more is known to be durable than that."""
        self._written = checkpoint
        self._queue_flusher.store_timestamp_ms = checkpoint.queues_timestamp_ms

    async def write(self) -> None:
        """Replace the file when there is more to say."""
        checkpoint = self.checkpoint_now()
        position = min(self._log.flushed, self._queue_flusher.position)
        if checkpoint == self._written:
            return
        try:
            await self._offload(lambda: write_checkpoint(self._disk, self._path, checkpoint))
        except OSError as error:
            self._on_error(error)
            return
        self._written = checkpoint
        if self._events is not None:
            self._events.emit(Kind.FLUSH, commit_offset=position, attrs={"file": "checkpoint"})

    def checkpoint_now(self) -> Checkpoint:
        """Store times of what is known to be durable: never of what was merely written."""
        return Checkpoint(
            self._log.flushed_timestamp_ms,
            self._queue_flusher.store_timestamp_ms,
            self._written.index_timestamp_ms,
        )
