"""The part that all stores share, whichever log they write: reading, recovery, flushing and expiry.

States: made, loaded (`load`: recovered, readable), started (`start`: writable), stopped. A disk error while
writing or syncing makes a started store read-only for good: what the disk then still holds is unknown, so
nothing more is promised on top of it (docs/protocol.md, "Disk errors").
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import Lock, LockedError
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store import layout, record
from mqproof.impl.store.checkpoint import read_checkpoint
from mqproof.impl.store.commit_log import CommitLog
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.consume_queue import ConsumeQueues, QueueGapError, Unit
from mqproof.impl.store.deleted_topics import DeletedTopics
from mqproof.impl.store.dispatch import Appended, Dispatcher
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.expiry import Cleaner
from mqproof.impl.store.group_commit import Done
from mqproof.impl.store.index import Index
from mqproof.impl.store.index_file import Header, IndexShape
from mqproof.impl.store.layout import Layout
from mqproof.impl.store.queue_flush import CheckpointWriter, IndexFlusher, QueueFlusher
from mqproof.impl.store.reader import find_records, read_messages
from mqproof.impl.store.recovery import Parts
from mqproof.impl.store.results import GetResult, GetStatus, PutResult, PutStatus, Recovery

Arrival = Callable[[str, int, int, int], None]
"""Told (topic, queue id, next queue offset, tags code) when a message became readable."""


class Store(ABC):
    """One store directory, owned by one process. Not thread-safe: call it from the event loop's thread."""

    def __init__(
        self,
        directory: str,
        config: StoreConfig,
        runtime: Runtime,
        events: EventLog | None,
        log: CommitLog,
    ) -> None:
        self.directory = directory
        self.config = config
        self.on_arrival: Arrival | None = None
        """Wakes long polls; called from within `put` or a flush, must not block or raise."""
        self.refusal = ""
        """Why nothing may be put for now, as into a slave's store: one line; empty while puts are taken."""
        self.failure = ""
        """Why the store became read-only: one line; empty while all is well."""
        self._runtime = runtime
        self._events = events
        self._layout = Layout(directory)
        self._lock: Lock | None = None
        self._writable = False
        self._log = log
        disk, offload = runtime.disk, runtime.offload
        self._deleted = DeletedTopics(disk, self._layout.deleted_topics)
        self._queues = ConsumeQueues(disk, self._layout.consume_queues, config.consume_queue_segment_bytes)
        shape = IndexShape(config.index_slots, config.index_entries)
        self._index = Index(disk, self._layout.index, shape) if config.index_enabled else None
        self._dispatcher = Dispatcher(self._queues, self._index, events)
        self._queue_flusher = QueueFlusher(self._queues, self._dispatcher, offload, events, self._fail)
        self._index_flusher = IndexFlusher(self._index, log, self.flush_log, offload, self._fail)
        self._checkpoint_writer = CheckpointWriter(
            disk,
            self._layout.checkpoint,
            log,
            self._queues,
            self._queue_flusher,
            self._index_flusher,
            offload,
            events,
            self._fail,
        )
        self._cleaner = Cleaner(
            log,
            self._queues,
            self._index,
            disk,
            offload,
            self._flush_and_write_checkpoint,
            self._checkpoint_writer.allows_to_forget,
        )

    # -- what depends on who writes the log

    @abstractmethod
    def put_soon(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
        """Store messages of one queue, one behind the other. `done` is called when the status is known, which
        is the same for all: before this returns, when the messages are refused."""

    @abstractmethod
    async def put_batch(self, messages: Sequence[Message], *, wait: bool = True) -> list[PutResult]:
        """The same, and wait for the status. `queue_id` must be valid: the store does not know topics."""

    async def put(self, message: Message, *, wait: bool = True) -> PutResult:
        """Store one message in its queue, as `put_batch`."""
        (result,) = await self.put_batch([message], wait=wait)
        return result

    @abstractmethod
    def confirms_at_once(self, wait: bool) -> bool:
        """Whether the status of a put is known as soon as it is written."""

    @abstractmethod
    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """The offset that the queue's next message gets."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None:
        """The topic is deleted. Raises OSError: the disk failed."""

    @abstractmethod
    def adopt_deletions(self, deleted: Mapping[str, int]) -> list[str]:
        """A slave's master has deleted these topics, by topic the commit offset before which their records
        are: their queues go, and what comes of them late gets no entry. Returns those that were not known.

        Raises OSError: the disk failed."""

    @abstractmethod
    async def flush_log(self) -> None:
        """Make the log durable up to its present end; a disk error makes the store read-only."""

    @abstractmethod
    async def start(self) -> None:
        """Begin, and run what a store does by itself; puts work from here on. StoreError on a disk error."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop cleanly, so that the next start has nothing to make up. Works from any state, also twice."""

    @abstractmethod
    def kill(self) -> None:
        """The end of a simulated process: services stop where they are, nothing is written or released."""

    @abstractmethod
    def _open_log(self) -> None:
        """Open the log's files. Raises StoreError, OSError."""

    @abstractmethod
    def _recover(self, parts: Parts, abnormal: bool) -> Recovery:
        """Make out where the log ends, and bring queues and index to it."""

    # -- life

    @property
    def is_open(self) -> bool:
        """Loaded, and not stopped since: it can be read."""
        return self._lock is not None

    @property
    def writable(self) -> bool:
        """Started, not stopped, no disk error so far, and room on the disk."""
        return self._writable and not self.failure and not self._cleaner.is_disk_full

    @property
    def has_all(self) -> bool:
        """Nobody has more of the log: who asks for what is not there may be told where the log ends."""
        return not self.refusal

    @property
    def log_begin(self) -> int:
        """Commit offset of the first record that the log still has."""
        return self._log.begin

    @property
    def log_end(self) -> int:
        """Commit offset where the next record goes."""
        return self._log.end

    @property
    def dispatched_end(self) -> int:
        """Commit offset up to which the log can be read by queue."""
        return self._dispatcher.position

    @property
    def log_flushed(self) -> int:
        """Commit offset up to which the log is durable."""
        return self._log.flushed

    def now_ms(self) -> int:
        """The time by which records are stamped: the clock's, but never before the last record."""
        return self._log.next_store_timestamp(now_ms(self._runtime.clock))

    def load(self, role: str | None = None) -> Recovery:
        """Lock the directory, recover what is in it, and make it readable. `role` is brokerRole, for the
        event log: a master to which no slave ever comes tells it nowhere else.

        Raises:
            StoreError: another process has the directory (nothing was changed), a file that does not belong
                there, a segment of another size than configured, a missing segment, or a disk error.
        """
        try:
            self._lock = self._runtime.disk.lock(self._layout.lock)
            return self._load(role)
        except LockedError as error:
            raise StoreError(f"{error}: is another broker running on {self.directory}?") from None
        except OSError as error:
            self._release()
            raise StoreError(f"{self.directory}: {error}") from None
        except StoreError:
            self._release()
            raise

    def begin(self) -> None:
        """Write the abort file and accept appends, without any service: the caller takes each step itself."""
        assert self._lock is not None, "load before start"
        try:
            layout.mark_running(self._runtime.disk, self._layout)
        except OSError as error:
            raise StoreError(f"{self._layout.abort}: {error}") from None
        self._writable = True

    # -- messages

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int = 32,
        max_bytes: int = 256 * 1024,
        tag_codes: Collection[int] | None = None,
    ) -> GetResult:
        """Dispatched records from `offset` on; `tag_codes` None or empty means all.

        At least one record is returned whatever its size. Raises OSError when the disk fails.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            found = GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        else:
            found = read_messages(self._log, queue, offset, max_count, max_bytes, tag_codes)
        if found.max_offset < offset <= self.taken_end(topic, queue_id):
            return replace(found, status=GetStatus.OFFSET_OVERFLOW_ONE, next_offset=offset)
        return found

    def taken_end(self, topic: str, queue_id: int) -> int:
        """One more than the queue's last offset that anybody may have read. Who did so elsewhere may be ahead
        of what is shown here, and is not beyond the end."""
        return self.max_offset(topic, queue_id)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first readable queue offset; 0 for a queue that does not exist."""
        queue = self._queues.find(topic, queue_id)
        return queue.first if queue else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """One more than the last readable queue offset; 0 for a queue that does not exist."""
        queue = self._queues.find(topic, queue_id)
        return queue.end if queue else 0

    def commit_offset_at(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Where the message at a queue offset is in the log; None when the queue has none there."""
        queue = self._queues.find(topic, queue_id)
        units = queue.units(offset, 1) if queue is not None and queue.first <= offset < queue.end else []
        return units[0].commit_offset if units else None

    def store_time_ms(self, topic: str, queue_id: int, offset: int) -> int | None:
        """When the message at a queue offset was stored; None when the queue has none there."""
        at = self.commit_offset_at(topic, queue_id, offset)
        return None if at is None else record.store_time_ms(self._log.read(at, record.FRONT_BYTES))

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit]:
        """At most `count` entries of a queue from `offset` on, fewer at the end of one of its segments."""
        queue = self._queues.find(topic, queue_id)
        return queue.units(offset, count) if queue else []

    def record_at(self, commit_offset: int) -> bytes | None:
        """The whole record at a commit offset, ready for the wire; None when there is none."""
        if not self._log.begin <= commit_offset < self._log.end:
            return None
        # A peer names the place, and another one may have written what a size would be read from.
        size, magic = record.peek(self._log.read(commit_offset, 8))
        if magic not in record.MAGICS or size > self.config.message_bytes_max + record.AROUND_BODY_BYTES_MAX:
            return None
        stored = self._log.record_at(commit_offset, size)
        return self._log.read(commit_offset, size) if stored else None

    def find(
        self, topic: str, key: str, count: int, begin_ms: int, end_ms: int, max_bytes: int = 8 << 20
    ) -> list[bytes]:
        """The newest `count` records of the topic with that key, stored from `begin_ms` to `end_ms`, oldest
        first; the key is the unique key or one of KEYS. Together at most `max_bytes`, but for the first; none
        without an index. Raises OSError."""
        if self._index is None:
            return []
        offsets = self._index.find(topic, key, begin_ms, end_ms)
        found: list[bytes] = []
        for stored, data in find_records(self._log, offsets, topic, key):
            if len(found) >= count or (found and len(data) > max_bytes):
                break
            if begin_ms <= stored.store_timestamp_ms <= end_ms:
                found.append(data)
                max_bytes -= len(data)
        return found[::-1]

    def topics(self) -> dict[str, int]:
        """The topics that have queues, and of how many the log knows."""
        counts: dict[str, int] = {}
        for topic, queue_id in (queue.key for queue in self._queues):
            counts[topic] = max(counts.get(topic, 0), queue_id + 1)
        return counts

    @property
    def deleted_topics(self) -> Mapping[str, int]:
        """Topics that were deleted, and before which commit offset the log has their records."""
        return self._deleted.table

    @property
    def index_end(self) -> tuple[int, int]:
        """Store time and commit offset of the last record that was indexed; zeros without one."""
        newest = self._index.newest if self._index else Header()
        return newest.end_timestamp_ms, newest.end_offset

    # -- steps

    async def flush_queues(self) -> None:
        """Make the entries dispatched so far durable; a disk error makes the store read-only."""
        if not self.failure:
            await self._queue_flusher.flush()

    async def write_checkpoint(self) -> None:
        """Make the index durable, and write down up to where all is, when that has moved; an error makes the
        store read-only."""
        if not self.failure:
            # The index is flushed here only, seldom: under load nearly all of its pages change all the time.
            await self._index_flusher.flush()
        if not self.failure:
            await self._checkpoint_writer.write()

    async def clean(self, *, manually: bool = False) -> int:
        """Delete what is too old, or too much for the disk; returns how many segments of the log were.
        `manually` is like the hour at which old ones are deleted. A disk error makes the store read-only."""
        if self.failure:
            return 0
        try:
            now = now_ms(self._runtime.clock)
            return await self._cleaner.clean(self.directory, self.config, now, manually=manually)
        except OSError as error:
            self._fail(error)
            return 0

    # -- inside

    def _refused(self) -> PutResult | None:
        """The answer to a put while nothing may be put."""
        if not self.refusal and self.writable:
            return None
        full = "the disk is nearly full" if self._cleaner.is_disk_full else "the store is not started"
        return PutResult(PutStatus.SERVICE_NOT_AVAILABLE, reason=self.failure or self.refusal or full)

    async def _clean(self) -> None:
        await self.clean()

    async def _flush_and_write_checkpoint(self) -> None:
        await self.flush_queues()
        await self.write_checkpoint()

    def _load(self, role: str | None) -> Recovery:
        disk = self._runtime.disk
        self._open_log()
        self._queues.load()
        self._deleted.load()
        checkpoint = read_checkpoint(disk, self._layout.checkpoint)
        abnormal = disk.exists(self._layout.abort)
        if self._index is not None:
            self._index.load(checkpoint.index, checkpoint.index_timestamp_ms, abnormal=abnormal)
        self._checkpoint_writer.recovered(checkpoint)
        parts = Parts(
            self._log,
            self._queues,
            self._index,
            self._dispatcher,
            checkpoint,
            self._deleted,
            self._checkpoint_writer.distrust_queues,
            self._events,
            self.config,
            role,
        )
        recovery = self._recover(parts, abnormal)
        if self._index is not None:
            self._index.write_out()  # until the abort file is there, the next start trusts the files
        return recovery

    def _arrived(self, appended: Appended) -> None:
        if self.on_arrival is not None:
            self.on_arrival(appended.topic, appended.queue_id, appended.queue_offset + 1, appended.tags_code)

    def _fail(self, error: OSError | QueueGapError) -> None:
        self.failure = self.failure or f"{self.directory}: disk error, the store is read-only: {error}"

    def _mark_clean(self) -> None:
        """The end of a clean exit: the abort file goes when everything before it succeeded."""
        if not self.failure:
            try:
                layout.mark_clean(self._runtime.disk, self._layout)
            except OSError as error:
                self._fail(error)

    def _release(self) -> None:
        self._log.segments.close()
        self._queues.close()
        if self._index is not None:
            self._index.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
