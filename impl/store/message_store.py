"""The store as a broker sees it: put, get, start, stop.

States: made, loaded (`load`: recovered, readable), started (`start`: writable), stopped. A disk error while
writing or syncing makes a started store read-only for good: what the disk then still holds is unknown, so
nothing more is promised on top of it (docs/protocol.md, "Disk errors").
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from impl.event_log import EventLog
from impl.message import Message, StoredMessage
from impl.runtime.clock import now_ms
from impl.runtime.disk import Lock, LockedError
from impl.runtime.runtime import Runtime
from impl.store import layout, record
from impl.store.appender import Appender
from impl.store.checkpoint import read_checkpoint
from impl.store.commit_log import CommitLog
from impl.store.config import FlushMode, StoreConfig
from impl.store.consume_queue import ConsumeQueues, QueueGapError, Unit
from impl.store.deleted_topics import DeletedTopics
from impl.store.dispatch import Appended, Dispatcher, appended_record, tell_append
from impl.store.errors import StoreError
from impl.store.expiry import Cleaner
from impl.store.flush import LogFlusher
from impl.store.index import Index
from impl.store.index_file import Header, IndexShape
from impl.store.layout import Layout
from impl.store.queue_flush import CheckpointWriter, IndexFlusher, QueueFlusher
from impl.store.reader import find_records, read_messages
from impl.store.recovery import Parts, recover
from impl.store.results import GetResult, GetStatus, PutResult, PutStatus, Recovery, put_status
from impl.store.segments import SegmentedFile
from impl.store.services import Services
from impl.store.turn import Done, Put, answer, results

_REASONS: Final = {
    PutStatus.FLUSH_DISK_TIMEOUT: "flush timed out",
    PutStatus.FLUSH_SLAVE_TIMEOUT: "no slave confirmed in time",
    PutStatus.SLAVE_NOT_AVAILABLE: "there is no slave to wait for",
}

Arrival = Callable[[str, int, int, int], None]
"""Told (topic, queue id, next queue offset, tags code) when a message became readable."""


Replicate = Callable[[int], Awaitable[PutStatus]]
"""Begins, at the call, to wait until slaves have the log up to a commit offset."""


class MessageStore:
    """One store directory, owned by one process. Not thread-safe: call it from the event loop's thread.

    `append`, `dispatch`, `flush_log`, `flush_queues` and `write_checkpoint` are the steps that the services
    take by themselves after `start`; after `begin` alone nothing happens but what the caller asks for.
    """

    def __init__(
        self, directory: str, config: StoreConfig, runtime: Runtime, events: EventLog | None = None
    ) -> None:
        self.directory = directory
        self.config = config
        self.on_arrival: Arrival | None = None
        """Wakes long polls; called from within `put` or a flush, must not block or raise."""
        self.refusal = ""
        """Why nothing may be put for now, as into a slave's store: one line; empty while puts are taken."""
        self.replicate: Replicate | None = None
        """Of a synchronous master: what a put waits for, beside its flush."""
        self.on_append: Callable[[], None] = lambda: None
        """Told when the log has grown; called from within `put`, must not block or raise."""
        self.failure = ""
        """Why the store became read-only: one line; empty while all is well."""
        self._runtime = runtime
        self._events = events
        self._layout = Layout(directory)
        self._lock: Lock | None = None
        self._writable = False
        disk = runtime.disk
        self._log = CommitLog(SegmentedFile(disk, self._layout.commit_log, config.commit_log_segment_bytes))
        self._deleted = DeletedTopics(disk, self._layout.deleted_topics)
        self._queues = ConsumeQueues(disk, self._layout.consume_queues, config.consume_queue_segment_bytes)
        shape = IndexShape(config.index_slots, config.index_entries)
        self._index = Index(disk, self._layout.index, shape) if config.index_enabled else None
        self._dispatcher = Dispatcher(self._queues, self._index, events)
        self._appender = Appender(self._log, self._queues, self._dispatcher, runtime.clock, events)
        self._turn: list[Put] = []
        self._answering: set[asyncio.Task[None]] = set()
        offload = runtime.offload
        self._flusher = LogFlusher(self._log, offload, events, self._flushed, self._fail)
        self._queue_flusher = QueueFlusher(self._queues, self._dispatcher, offload, events, self._fail)
        self._index_flusher = IndexFlusher(self._index, self._log, self._flusher.flush, offload, self._fail)
        self._checkpoint_writer = CheckpointWriter(
            disk,
            self._layout.checkpoint,
            self._log,
            self._queues,
            self._queue_flusher,
            self._index_flusher,
            offload,
            events,
            self._fail,
        )
        self._cleaner = Cleaner(
            self._log,
            self._queues,
            self._index,
            disk,
            offload,
            self._flush_and_write_checkpoint,
            self._checkpoint_writer.allows_to_forget,
        )
        self._services = Services(
            config, self._flusher, self.flush_queues, self.write_checkpoint, self._clean
        )

    # -- life

    @property
    def writable(self) -> bool:
        """Started, not stopped, no disk error so far, and room on the disk."""
        return self._writable and not self.failure and not self._cleaner.is_disk_full

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

    @property
    def log_last_record(self) -> int | None:
        """Commit offset of the last record; None of a log without any."""
        return self._log.last_record

    @property
    def log_segment_bytes(self) -> int:
        return self.config.commit_log_segment_bytes

    def log_read(self, position: int, size: int) -> bytes:
        """Bytes of the log as they are: fewer at the end of a segment, none where there is none."""
        return self._log.read(position, min(size, self._log.end - position))

    def now_ms(self) -> int:
        """The time by which records are stamped: the clock's, but never before the last record."""
        return self._log.next_store_timestamp(now_ms(self._runtime.clock))

    def load(self) -> Recovery:
        """Lock the directory, recover what is in it, and make it readable.

        Raises:
            StoreError: another process has the directory (nothing was changed), a file that does not belong
                there, a segment of another size than configured, a missing segment, or a disk error.
        """
        try:
            self._lock = self._runtime.disk.lock(self._layout.lock)
            return self._load()
        except LockedError as error:
            raise StoreError(f"{error}: is another broker running on {self.directory}?") from None
        except OSError as error:
            self._release()
            raise StoreError(f"{self.directory}: {error}") from None
        except StoreError:
            self._release()
            raise

    async def start(self) -> None:
        """Begin, and run the services that flush; `put` works from here on. StoreError on a disk error."""
        self.begin()
        self._services.start()

    def begin(self) -> None:
        """Write the abort file and accept appends, without any service: the caller takes each step itself."""
        assert self._lock is not None, "load before start"
        try:
            layout.mark_running(self._runtime.disk, self._layout)
        except OSError as error:
            raise StoreError(f"{self._layout.abort}: {error}") from None
        self._writable = True

    async def stop(self) -> None:
        """Stop cleanly: flush the log, dispatch all, flush the queues, write the checkpoint, remove the abort
        file, release the lock. After a disk error the abort file stays. Works from any state, also twice."""
        started, self._writable = self._writable, False
        await self._services.stop()
        if started:
            await self._make_all_durable()
        self._release()

    def kill(self) -> None:
        """The end of a simulated process: services stop where they are, nothing is written or released."""
        self._writable = False
        self._turn = []
        for task in self._answering:
            task.cancel()
        self._services.kill()

    # -- messages

    async def put(self, message: Message, *, wait: bool = True) -> PutResult:
        """Store one message in its queue (`queue_id` must be valid: the store does not know topics).

        Returns when the status is known: under SYNC_FLUSH with `wait` after the fsync that covers the
        message.
        """
        (result,) = await self.put_batch([message], wait=wait)
        return result

    async def put_batch(self, messages: Sequence[Message], *, wait: bool = True) -> list[PutResult]:
        """Store messages of one queue, one behind the other; all have the same status. As `put`."""
        appended = self._try(messages, self.append_batch)
        if isinstance(appended, PutResult):
            return [appended] * len(messages)
        self.dispatch()
        status = await self._confirmed(appended[-1], wait)
        return results(appended, messages[0].store_host, status, self._reason(status))

    def put_soon(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
        """As `put_batch`, together with all that is put in this turn of the event loop. `done` is called when
        the status is known: before this returns, when the messages are refused."""
        appended = self._try(messages, self._stage)
        if isinstance(appended, PutResult):
            done([appended] * len(messages))
            return
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn.append(Put(appended, messages[0].store_host, wait, done))

    def _try(
        self, messages: Sequence[Message], append: Callable[[Sequence[Message]], list[Appended]]
    ) -> list[Appended] | PutResult:
        """The messages as they were appended, or why they were not."""
        if self.refusal or not self.writable:
            full = "the disk is nearly full" if self._cleaner.is_disk_full else "the store is not started"
            reason = self.failure or self.refusal or full
            return PutResult(PutStatus.SERVICE_NOT_AVAILABLE, reason=reason)
        try:
            return append(messages)
        except ValueError as error:
            return PutResult(PutStatus.MESSAGE_ILLEGAL, reason=str(error))
        except OSError as error:
            self._fail(error)
            return PutResult(PutStatus.UNKNOWN_ERROR, reason=self.failure)

    def _end_turn(self) -> None:
        """Write what was put in this turn, and answer it as soon as its status is known."""
        puts, self._turn = self._turn, []
        if not puts:
            return  # the store was stopped in this turn
        try:
            self._write()
        except OSError as error:
            self._fail(error)
        if self.failure:
            refused = PutResult(PutStatus.UNKNOWN_ERROR, reason=self.failure)
            for put in puts:
                put.done([refused] * len(put.appended))
            return
        self.dispatch()
        for wait in (True, False):
            alike = [put for put in puts if put.wait is wait]
            if alike and self.confirms_at_once(wait):
                answer(alike, PutStatus.PUT_OK, "")
            elif alike:
                task = asyncio.create_task(self._answer(alike, wait))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def _answer(self, puts: list[Put], wait: bool) -> None:
        status = await self._confirmed(puts[-1].appended[-1], wait)
        answer(puts, status, self._reason(status))

    def confirms_at_once(self, wait: bool) -> bool:
        """Whether the status of a put is known as soon as it is written."""
        return self.config.flush_mode is FlushMode.ASYNC_FLUSH and not (wait and self.replicate)

    async def _confirmed(self, last: Appended, wait: bool) -> PutStatus:
        """The status of all that was put up to that record."""
        # Asked for now: whether there is a slave to wait for is decided as the record is appended.
        replicated = self.replicate(last.end) if wait and self.replicate else None
        status = await self.settle(last, wait)
        return status if replicated is None else put_status(status, await replicated)

    def _reason(self, status: PutStatus) -> str:
        return "" if status is PutStatus.PUT_OK else self.failure or _REASONS.get(status, "")

    def append(self, message: Message) -> Appended:
        """Write the message to the end of the log, in the page cache; its queue offset is taken.

        Raises:
            ValueError: the message cannot be stored; nothing was written. OSError: the disk failed.
        """
        (appended,) = self.append_batch([message])
        return appended

    def append_batch(self, messages: Sequence[Message]) -> list[Appended]:
        """The same for messages of one queue, in one segment: in one write, so that a process dies before or
        after all of them; of a crash of the machine a prefix may be left."""
        appended = self._stage(messages)
        self._write()
        return appended

    def append_replicated(self, records: Sequence[tuple[bytes, StoredMessage]]) -> None:
        """Write records as a master's log has them, at the end of this one, in the page cache; dispatch them.

        Raises:
            OSError: the disk failed or is full, or a queue lacks the entries before these; but for a full
                disk the store is read-only now.
        """
        if not self.writable:
            raise OSError(self.failure or "the store is not started, or its disk is nearly full")
        try:
            for data, stored in records:
                self._log.append_stored(stored.commit_offset, data, stored.store_timestamp_ms)
                appended = appended_record(stored, self.config.delay_levels_ms)
                if appended.queued and self._log.begin > 0:
                    self._begin_queue(appended)
                self._dispatcher.add(appended)
                if self._events is not None:
                    tell_append(self._events, appended)
            self._dispatcher.run(self.confirm_offset(), self._arrived)
        except QueueGapError as error:
            self._fail(OSError(str(error)))
            raise OSError(self.failure) from None
        except OSError as error:
            self._fail(error)
            raise
        if self.config.flush_mode is FlushMode.SYNC_FLUSH:
            self._flusher.want(self._log.end)  # nobody waits for it, but it is seen only when it is durable

    def _begin_queue(self, appended: Appended) -> None:
        """A log that does not begin at 0 has queues that begin with its first record of them."""
        queue = self._queues.find_or_make(appended.topic, appended.queue_id)
        if queue.end == 0 < appended.queue_offset:
            queue.begin_at(appended.queue_offset)

    def delete_topic(self, topic: str) -> None:
        """Forget the topic's queues, durably: one of that name made anew begins at offset 0. Its messages
        stay in the log until they expire. In one go, so that no message is of neither topic.

        Raises:
            OSError: the disk failed; when nothing was changed by then, the store stays writable.
        """
        self._end_turn()
        if not self.writable:
            raise OSError(self.failure or "the store is not started, or its disk is nearly full")
        if not (self._queues.has(topic) or self._appender.has(topic)):
            return
        self._deleted.add(topic, self._log.end, self._log.begin)
        self._dispatcher.forget(topic)
        self._appender.forget(topic)
        try:
            self._queues.remove(topic)
        except OSError as error:
            self._fail(error)
            raise
        self._checkpoint_writer.count_again()

    async def settle(self, appended: Appended, wait: bool) -> PutStatus:
        """The answer to a put: under SYNC_FLUSH it waits until the record is durable."""
        if self.config.flush_mode is FlushMode.ASYNC_FLUSH:
            return PutStatus.PUT_OK
        if not wait:
            self._flusher.want(appended.end)  # nobody waits for it, but it is seen only when it is durable
            return PutStatus.PUT_OK
        if await self._flusher.wait_durable(appended.end, self.config.sync_flush_timeout_ms):
            return PutStatus.PUT_OK
        return PutStatus.FLUSH_DISK_TIMEOUT

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
            return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        return read_messages(self._log, queue, offset, max_count, max_bytes, tag_codes)

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

    @property
    def index_end(self) -> tuple[int, int]:
        """Store time and commit offset of the last record that was indexed; zeros without one."""
        newest = self._index.newest if self._index else Header()
        return newest.end_timestamp_ms, newest.end_offset

    # -- steps

    def dispatch(self) -> int:
        """Dispatch what may be seen; returns how many records. A disk error makes the store read-only."""
        try:
            return self._dispatcher.run(self.confirm_offset(), self._arrived)
        except OSError as error:
            self._fail(error)
            return 0

    def confirm_offset(self) -> int:
        """Up to where records may be seen: under SYNC_FLUSH only what no crash can take back."""
        return self._log.flushed if self.config.flush_mode is FlushMode.SYNC_FLUSH else self._log.end

    async def flush_log(self) -> None:
        """Make the log durable up to its present end; a disk error makes the store read-only."""
        await self._flusher.flush()

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

    async def _clean(self) -> None:
        await self.clean()

    async def _flush_and_write_checkpoint(self) -> None:
        await self.flush_queues()
        await self.write_checkpoint()

    def _load(self) -> Recovery:
        disk = self._runtime.disk
        self._log.segments.load()
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
        )
        recovery = recover(parts, abnormal)
        if self._index is not None:
            self._index.write_out()  # until the abort file is there, the next start trusts the files
        return recovery

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """The offset that the queue's next message gets."""
        return self._appender.next_queue_offset(topic, queue_id)

    def _stage(self, messages: Sequence[Message]) -> list[Appended]:
        return self._appender.stage(messages, self.config)

    def _write(self) -> None:
        self._appender.write()
        self.on_append()

    def _flushed(self) -> None:
        self.dispatch()

    def _arrived(self, appended: Appended) -> None:
        if self.on_arrival is not None:
            self.on_arrival(appended.topic, appended.queue_id, appended.queue_offset + 1, appended.tags_code)

    def _fail(self, error: OSError) -> None:
        self.failure = self.failure or f"{self.directory}: disk error, the store is read-only: {error}"

    async def _make_all_durable(self) -> None:
        """The clean exit. The abort file goes last, and only when everything before it succeeded."""
        self._end_turn()
        await self.flush_log()
        self.dispatch()
        await self.flush_queues()
        await self.write_checkpoint()
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
