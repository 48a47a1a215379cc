"""The common part of all stores, whichever log they write: reading, recovery, flushing and expiry.

States: made, loaded (`load`: recovered, readable), started (`start`: writable), stopped. A disk error while
writing or syncing makes a started store read-only permanently. What the disk holds after that is unknown, so
the store promises nothing more (docs/reference/protocol/storing.md, "Disk errors").
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import Lock, LockedError, is_out_of_space
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.dispatch import Arrival, Dispatcher, index_keys, takes_queue_offset
from mqproof.impl.store.entry_repair import EntryRepair, LostRecord
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.expiry import Cleaner
from mqproof.impl.store.files import layout, record
from mqproof.impl.store.files.checkpoint import read_checkpoint
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueues, QueueGapError, Unit
from mqproof.impl.store.files.deleted_topics import DeletedTopics
from mqproof.impl.store.files.index import Index
from mqproof.impl.store.files.index_file import Header, IndexShape
from mqproof.impl.store.files.layout import Layout
from mqproof.impl.store.group_commit import Done
from mqproof.impl.store.queue_flush import CheckpointWriter, IndexFlusher, QueueFlusher
from mqproof.impl.store.reader import find_records, read_messages
from mqproof.impl.store.recovery import Parts
from mqproof.impl.store.results import GetResult, GetStatus, PutResult, PutStatus, Recovery
from mqproof.impl.store.scrub import Scrub

_log = logging.getLogger(__name__)


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
        """Why puts are refused for now, for example in a slave's store, in one line; empty while accepted."""
        self.failure = ""
        """Why the store became read-only, in one line; empty while there is no failure."""
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
        self.damage = DamageReport()
        log.on_damage = self._report_log
        if self._index is not None:
            self._index.on_damage = self._report_index
        self._repair = EntryRepair(
            log, config.delay_levels_ms, self.damage, self._deleted.has, self._may_write, self._fail
        )
        self.scrub = Scrub(config, self._queues, log, self._repair, self.damage, offload)
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
            self._checkpoint_writer.allows_to_remove,
        )

    # -- methods that depend on the log's writer

    @abstractmethod
    def put_soon(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
        """Store messages of one queue, one after the other.

        `done` is called when the status is known; it is the same for all messages. If the messages are
        refused, `done` is called before this method returns.
        """

    @abstractmethod
    async def put_batch(self, messages: Sequence[Message], *, wait: bool = True) -> list[PutResult]:
        """Store messages like `put_soon`, and wait for the status.

        `queue_id` must be valid, because the store does not know the topics.
        """

    async def put(self, message: Message, *, wait: bool = True) -> PutResult:
        """Store one message in its queue, like `put_batch`."""
        (result,) = await self.put_batch([message], wait=wait)
        return result

    @abstractmethod
    def confirms_at_once(self, wait: bool) -> bool:
        """Return whether the status of a put is known as soon as it is written."""

    @abstractmethod
    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset that the queue's next message gets."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None:
        """Delete the topic's queues. Raises OSError: the disk failed."""

    @abstractmethod
    def adopt_deletions(self, deleted: Mapping[str, int]) -> list[str]:
        """Apply the deletions of a slave's master; return the topics whose deletion is new here.

        `deleted` maps a topic to a commit offset; the topic's records before it are deleted. The topic's
        queues are removed, and such records that arrive later get no queue entry.

        Raises OSError: the disk failed.
        """

    @abstractmethod
    async def flush_log(self) -> None:
        """Make the log durable up to its current end; a disk error makes the store read-only."""

    @abstractmethod
    async def start(self) -> None:
        """Begin and start the background tasks; puts work from then on. Raises StoreError on a disk error."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop cleanly, so that the next start has nothing to recover. Works in any state, also twice."""

    @abstractmethod
    def kill(self) -> None:
        """End as a killed process does, in a simulation: tasks stop, and nothing is written or released."""

    @abstractmethod
    def _open_log(self) -> None:
        """Open the log's files. Raises StoreError, OSError."""

    @abstractmethod
    def _recover(self, parts: Parts, abnormal: bool) -> Recovery:
        """Find the end of the log, and bring queues and index to it."""

    # -- life cycle

    @property
    def is_open(self) -> bool:
        """Whether the store is loaded and not stopped, so that it can be read."""
        return self._lock is not None

    @property
    def writable(self) -> bool:
        """Whether the store is started and not stopped, has had no disk error, and has room on the disk."""
        return self._writable and not self.failure and not self._cleaner.is_disk_full

    @property
    def is_disk_full(self) -> bool:
        """Whether messages are refused for now, because the disk was nearly full at the last check."""
        return self._cleaner.is_disk_full and not self.failure

    @property
    def has_all(self) -> bool:
        """Whether no other broker has more of the log, so that this log's end may be reported as the end."""
        return not self.refusal

    @property
    def log_begin(self) -> int:
        """The commit offset of the first record that the log still has."""
        return self._log.begin

    @property
    def log_end(self) -> int:
        """The commit offset where the next record is appended."""
        return self._log.end

    @property
    def next_commit_offset(self) -> int:
        """The commit offset of the next record if it fits into the segment; no later record is before it."""
        return self._log.end + self._log.header_bytes

    @property
    def dispatched_end(self) -> int:
        """The commit offset up to which the log can be read by queue."""
        return self._dispatcher.position

    @property
    def log_flushed(self) -> int:
        """The commit offset up to which the log is durable."""
        return self._log.flushed

    @property
    def log_wanted_before(self) -> int:
        """The commit offset before which the log would be deleted if no record were needed; 0 for none."""
        return self._cleaner.wanted_before

    def keep_log_from(self, reader: str, needed_from: Callable[[], int | None]) -> None:
        """Set the function that returns the first commit offset that a reader needs, or None."""
        self._cleaner.readers[reader] = needed_from

    def now_ms(self) -> int:
        """Return the time for the next record: the clock's time, but never before the last record's."""
        return self._log.next_store_timestamp(now_ms(self._runtime.clock))

    def load(self, role: str | None = None) -> Recovery:
        """Lock the directory, recover its content, and make it readable.

        `role` is the brokerRole that the event of the recovery reports. A master without slaves reports
        its role in no other event.

        Raises:
            StoreError: another process has the directory (nothing was changed), a file that does not belong
                there, a segment of another size than configured, a missing segment, or a disk error.
        """
        try:
            self._lock = self._runtime.disk.lock(self._layout.lock)
            return self._load(role)
        except LockedError as error:
            raise StoreError(f"{error}: is another broker using {self.directory}?") from None
        except OSError as error:
            self._release()
            raise StoreError(f"{self.directory}: {error}") from None
        except StoreError:
            self._release()
            raise

    def begin(self) -> None:
        """Write the abort file and accept appends, without background tasks: the caller runs each step."""
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
        selects: Callable[[bytes], bool] | None = None,
    ) -> GetResult:
        """Return dispatched records from `offset` on; `tag_codes` None or empty means all.

        With `selects`, only the records that it accepts are returned.

        At least one record is returned whatever its size. Raises OSError when the disk fails.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            found = GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        else:
            found = read_messages(
                self._log, queue, offset, max_count, max_bytes, tag_codes, self._repair, selects
            )
        if found.max_offset < offset <= self.taken_end(topic, queue_id):
            return replace(found, status=GetStatus.OFFSET_OVERFLOW_ONE, next_offset=offset)
        return found

    def taken_end(self, topic: str, queue_id: int) -> int:
        """Return one more than the last offset in the queue that any client may have read.

        A client that read it from another broker may be ahead of this store's readable end, and is still not
        beyond the queue's end.
        """
        return self.max_offset(topic, queue_id)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Return the first readable queue offset; 0 for a queue that does not exist."""
        queue = self._queues.find(topic, queue_id)
        return queue.first if queue else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Return one more than the last readable queue offset; 0 for a queue that does not exist."""
        queue = self._queues.find(topic, queue_id)
        return queue.end if queue else 0

    def commit_offset_at(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Return the commit offset of the message at a queue offset; None if there is no message."""
        unit = self.unit(topic, queue_id, offset)
        return unit.commit_offset if unit else None

    def store_time_ms(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Return when the message at a queue offset was stored; None if there is no message."""
        at = self.commit_offset_at(topic, queue_id, offset)
        return None if at is None else record.store_time_ms(self._log.read(at, record.FRONT_BYTES))

    def unit(self, topic: str, queue_id: int, offset: int) -> Unit | None:
        """Return the entry at a queue offset, repaired if it was damaged.

        None if there is none, or if its record is damaged. Raises OSError.
        """
        queue = self._queues.find(topic, queue_id)
        return self._repair.unit(queue, offset) if queue else None

    def entry(self, topic: str, queue_id: int, offset: int) -> tuple[Unit, StoredMessage] | None:
        """Return the entry at a queue offset, like `unit`, with the message of its record."""
        queue = self._queues.find(topic, queue_id)
        return self._repair.entry(queue, offset) if queue else None

    def lost_records(self) -> tuple[LostRecord, ...]:
        """Return the records that reads found damaged, and that were not repaired yet."""
        return self._repair.lost()

    def restore_record(self, lost: LostRecord, data: bytes) -> bool:
        """Replace a damaged record durably by the bytes of a peer, which are checked like any record.

        Returns whether the record is right now. A failure of the disk makes the store read-only.
        """
        try:
            is_right = self._repair.restore(self._queues.find(lost.topic, lost.queue_id), lost, data)
            if is_right:
                self._log.segments.sync()
        except OSError as error:
            self._fail(error)
            return False
        return is_right

    def damaged_record(self, commit_offset: int, count: int) -> int | None:
        """Return the commit offset of the first damaged record among some; None if all are sound.

        They are the record that contains the commit offset and those after it, as far as queues have them. A
        damaged one is reported, and requested from the peers.
        """
        for queue, offset in self._queues.entries_from(commit_offset, count):
            (unit,) = queue.units(offset, 1)
            if self._repair.unit(queue, offset) is None:
                return unit.commit_offset
        return None

    def log_path(self, commit_offset: int) -> str:
        """Return the path of the file of the log that has the byte at a commit offset."""
        return self._log.segments.path_of(commit_offset)

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit]:
        """Return at most `count` entries of a queue from `offset` on; fewer at the end of a segment.

        They are as they are in the file, not compared with their records.
        """
        queue = self._queues.find(topic, queue_id)
        return queue.units(offset, count) if queue else []

    def record_at(self, commit_offset: int) -> bytes | None:
        """Return the whole record at a commit offset, in wire format; None if there is no record."""
        found = self._found_at(commit_offset)
        return found[0] if found is not None else None

    def stored_at(self, commit_offset: int) -> StoredMessage | None:
        """Return the message at a commit offset; None if there is no record."""
        found = self._found_at(commit_offset)
        return found[1] if found is not None else None

    def _found_at(self, commit_offset: int) -> tuple[bytes, StoredMessage] | None:
        if not self._log.begin <= commit_offset < self._log.end:
            return None
        # Clients choose the offset, and a client may have written the bytes there that would be read as a
        # size.
        size, _ = record.peek(self._log.read(commit_offset, 8))
        if size > self.config.message_bytes_max + record.AROUND_BODY_BYTES_MAX:
            return None
        data = self._log.read(commit_offset, size)
        stored = self._log.decode(data, commit_offset)
        return (data, stored) if stored is not None and self._is_dispatched_as(stored) else None

    def records_from(self, commit_offset: int) -> Iterator[StoredMessage]:
        """Yield the records of the log from a record, or from `next_commit_offset` at some time, on."""
        for _, stored in self._log.scan(max(commit_offset - self._log.header_bytes, 0)):
            if stored is not None:
                yield stored

    def find(
        self, topic: str, key: str, count: int, begin_ms: int, end_ms: int, max_bytes: int = 8 << 20
    ) -> list[bytes]:
        """Return the newest `count` records of the topic with that key, oldest first.

        The records were stored from `begin_ms` to `end_ms`. The key is the unique key or one of KEYS. The
        records have at most `max_bytes` together, but the first one is returned whatever its size. Without an
        index the result is empty. Raises OSError.
        """
        if self._index is None:
            return []
        offsets = self._index.find(topic, key, begin_ms, end_ms)

        def is_wanted(stored: StoredMessage) -> bool:
            return (
                stored.message.topic == topic
                and begin_ms <= stored.store_timestamp_ms <= end_ms
                and key in index_keys(stored.message)
                and self._is_dispatched_as(stored)
            )

        found: list[bytes] = []
        for data in find_records(self._log, offsets, is_wanted, self.damage):
            if len(found) >= count or (found and len(data) > max_bytes):
                break
            found.append(data)
            max_bytes -= len(data)
        return found[::-1]

    def topics(self) -> dict[str, int]:
        """Return the topics that have queues in this log, each with its largest queue id plus one."""
        counts: dict[str, int] = {}
        for topic, queue_id in (queue.key for queue in self._queues):
            counts[topic] = max(counts.get(topic, 0), queue_id + 1)
        return counts

    @property
    def deleted_topics(self) -> Mapping[str, int]:
        """The deleted topics, with the commit offset before which the log has their records."""
        return self._deleted.table

    @property
    def index_end(self) -> tuple[int, int]:
        """The store time and commit offset of the last indexed record; zeros if there is none."""
        newest = self._index.newest if self._index else Header()
        return newest.end_timestamp_ms, newest.end_offset

    # -- steps

    async def flush_queues(self) -> None:
        """Make the entries dispatched so far durable; a disk error makes the store read-only."""
        if not self.failure:
            await self._queue_flusher.flush()

    async def write_checkpoint(self) -> None:
        """Make the index durable and write a changed checkpoint. An error makes the store read-only."""
        if not self.failure:
            # The index is flushed only here, and rarely: under load nearly all of its pages change all the
            # time.
            await self._index_flusher.flush()
        if not self.failure:
            await self._checkpoint_writer.write()

    async def clean(self, *, manually: bool = False) -> int:
        """Delete expired segments, and others if the disk is full; return how many of the log were deleted.

        `manually` has the same effect as the hour at which expired segments are deleted. A disk error makes
        the store read-only.
        """
        if self.failure:
            return 0
        try:
            now = now_ms(self._runtime.clock)
            return await self._cleaner.clean(self.directory, self.config, now, manually=manually)
        except OSError as error:
            self._fail(error)
            return 0

    # -- internal methods

    def _is_dispatched_as(self, stored: StoredMessage) -> bool:
        """Return whether the queue that a record names has it: no checksum covers topic, queue and offset.

        Without an entry, the record is not dispatched yet, or its topic was deleted.
        """
        key, offset = (stored.message.topic, stored.message.queue_id), stored.queue_offset
        queue = self._queues.find(*key)
        if not takes_queue_offset(stored.message.sys_flag) or stored.commit_offset >= self.dispatched_end:
            return True
        if queue is None or offset >= queue.end or self._deleted.has(key[0], stored.commit_offset):
            return self._deleted.has(key[0], stored.commit_offset) and not self._is_of_a_queue(stored)
        return offset < queue.first or self._repair.has(queue, offset, stored)

    def _is_of_a_queue(self, stored: StoredMessage) -> bool:
        """Return whether a queue has the record of a deleted topic: then its topic is altered."""
        return any(
            queue.units(offset, 1)[0].commit_offset == stored.commit_offset
            for queue, offset in self._queues.entries_from(stored.commit_offset, 1)
        )

    def _refused(self) -> PutResult | None:
        """Return the answer to a put while puts are refused, otherwise None."""
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
        self._deleted.load(self.damage)
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
            self.damage,
        )
        try:
            recovery = self._recover(parts, abnormal)
        except StoreError:
            self._checkpoint_writer.restore(checkpoint)  # so that the next start is refused, too
            raise
        if self._index is not None:
            self._index.write_out()  # until the abort file is written, the next start trusts the files
        return recovery

    def _may_write(self) -> bool:
        return self._writable and not self.failure

    def _fail(self, error: OSError | QueueGapError) -> None:
        if self.failure:
            return
        self.failure = f"{self.directory}: disk error, the store is read-only: {error}"
        is_full = isinstance(error, OSError) and is_out_of_space(error)
        remedy = "free space on the disk, and restart it" if is_full else "replace the disk, or restart it"
        _log.error("%s; the broker accepts no message until it is restarted: %s", self.failure, remedy)

    def _report_log(self, begin: int, end: int) -> None:
        place = f"{self._log.segments.path_of(begin)}, commit offset {begin} to {end}"
        self.damage.add(Damage(DamageKind.LOG, place, "there is no whole record", Outcome.SKIPPED))

    def _report_index(self, path: str, number: int) -> None:
        problem = "it does not belong to its chain, so a search by key may miss messages"
        self.damage.add(Damage(DamageKind.INDEX_ENTRY, f"{path}, entry {number}", problem, Outcome.SKIPPED))

    def _mark_clean(self) -> None:
        """Finish a clean exit: remove the abort file if everything before it succeeded."""
        if not self.failure and not self._checkpoint_writer.is_late:
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
