"""The store of a broker that writes its own log: a put waits for its flush and, if configured, for slaves.

`base.py` has the common part of all stores: their states, reading, and the maintenance of the files.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store import group_commit, results
from mqproof.impl.store.appender import Appender, described_records
from mqproof.impl.store.background import BackgroundTasks
from mqproof.impl.store.base import Store
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.dispatch import Appended, Run, appended_record, emit_append, run_of
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import QueueGapError
from mqproof.impl.store.files.layout import Layout
from mqproof.impl.store.files.segments import SegmentedFile
from mqproof.impl.store.flush import LogFlusher
from mqproof.impl.store.group_commit import Done, Put, answer
from mqproof.impl.store.recovery import Parts, recover
from mqproof.impl.store.results import PutResult, PutStatus, Recovery

_REASONS: Final = {
    PutStatus.FLUSH_DISK_TIMEOUT: "flush timed out",
    PutStatus.FLUSH_SLAVE_TIMEOUT: "no slave confirmed in time",
    PutStatus.SLAVE_NOT_AVAILABLE: "there is no slave to wait for",
}

Replicate = Callable[[int], Awaitable[PutStatus]]
"""Starts to wait, when called, until slaves have the log up to a commit offset."""


class MessageStore(Store):
    """The store of a broker that writes its own log.

    After `start`, background tasks call `append`, `dispatch`, `flush_log`, `flush_queues` and
    `write_checkpoint`. After `begin` without `start`, the caller must call them.
    """

    def __init__(
        self, directory: str, config: StoreConfig, runtime: Runtime, events: EventLog | None = None
    ) -> None:
        segments = SegmentedFile(runtime.disk, Layout(directory).commit_log, config.commit_log_segment_bytes)
        super().__init__(directory, config, runtime, events, CommitLog(segments))
        self.replicate: Replicate | None = None
        """On a synchronous master, called for a put that waits for slaves."""
        self.on_append: Callable[[], None] = lambda: None
        """Called when the log has grown, from within `put`; must not block or raise."""
        self._appender = Appender(self._log, self._queues, self._dispatcher, runtime.clock, events)
        self._turn: list[Put] = []
        self._answering: set[asyncio.Task[None]] = set()
        self._flusher = LogFlusher(self._log, runtime.offload, events, self._flushed, self._fail)
        self._services = BackgroundTasks(
            config,
            self._flusher,
            self.flush_queues,
            self.write_checkpoint,
            self._clean,
            self.scrub,
            runtime.supervisor,
        )

    # -- life cycle

    @property
    def log_last_record(self) -> int | None:
        """Commit offset of the last record; None for an empty log."""
        return self._log.last_record

    @property
    def log_segment_bytes(self) -> int:
        return self.config.commit_log_segment_bytes

    def log_read(self, position: int, size: int) -> bytes:
        """Return bytes of the log; fewer at the end of a segment, none where the log has none."""
        return self._log.read(position, min(size, self._log.end - position))

    def begin(self) -> None:
        """Begin as any store, and adjust the deletions to the end of the log.

        A store that accepts puts reuses the commit offsets that a crash took from the log, so its deletions
        are limited to the log. A slave receives the lost records again, and those that were deleted stay
        deleted.
        """
        super().begin()
        if not self.refusal:
            try:
                self._deleted.clamp(self._log.end)
            except OSError as error:
                raise StoreError(f"{self._layout.deleted_topics}: {error}") from None

    async def start(self) -> None:
        """Begin, and start the background tasks that flush; puts work from then on.

        Raises StoreError on a disk error.
        """
        self.begin()
        self._services.start()

    async def stop(self) -> None:
        """Stop cleanly. Works in any state, also twice.

        It flushes the log, dispatches everything, flushes the queues, writes the checkpoint, removes the
        abort file and releases the lock. After a disk error the abort file stays.
        """
        started, self._writable = self._writable, False
        try:
            await self._services.stop()
            if started:
                await self._make_all_durable()
        finally:
            self._release()

    def kill(self) -> None:
        """End as a killed process does, in a simulation: tasks stop, and nothing is written or released."""
        self._writable = False
        self._turn = []
        for task in self._answering:
            task.cancel()
        self._flusher.forget_waits()
        self._services.kill()

    # -- messages

    async def put_batch(self, messages: Sequence[Message], *, wait: bool = True) -> list[PutResult]:
        """Store messages of one queue, one after the other, and wait; all have the same status."""
        run = self._try(messages, self._append)
        if isinstance(run, PutResult):
            return [run] * len(messages)
        self.dispatch()
        status = await self._confirmed(run, wait)
        return group_commit.results(run, messages[0].store_host, status, self._reason(status))

    def put_soon(self, messages: Sequence[Message], done: Done, *, wait: bool = True) -> None:
        """Store messages like `put_batch`, together with all puts of this turn of the event loop.

        `done` is called when the status is known. If the messages are refused, it is called before this
        method returns.
        """
        run = self._try(messages, self._stage)
        if isinstance(run, PutResult):
            done([run] * len(messages))
            return
        if not self._turn:
            end = self._runtime.supervisor.guarded("write of messages", self._end_turn)
            asyncio.get_running_loop().call_soon(end)
        self._turn.append(Put(run, messages[0].store_host, wait, done))

    def _try(
        self, messages: Sequence[Message], append: Callable[[Sequence[Message]], Run]
    ) -> Run | PutResult:
        """Return the appended records, or the result with the reason why they were not appended."""
        if refused := self._refused():
            return refused
        try:
            return append(messages)
        except ValueError as error:
            return PutResult(PutStatus.MESSAGE_ILLEGAL, reason=str(error))
        except OSError as error:
            self._fail(error)
            return PutResult(PutStatus.UNKNOWN_ERROR, reason=self.failure)

    def _end_turn(self) -> None:
        """Write the puts of this turn, and answer each when its status is known."""
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
                put.done([refused] * len(put.run.offsets))
            return
        self.dispatch()
        for wait in (True, False):
            alike = [put for put in puts if put.wait is wait]
            if alike:
                self._answer(alike, wait)

    def _answer(self, puts: list[Put], wait: bool) -> None:
        """Answer puts of one turn when their status is known."""
        supervisor = self._runtime.supervisor
        if wait and self.replicate:
            for part in group_commit.parts(puts):
                task = supervisor.run("answers to sends", self._answer_confirmed(part))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
        else:
            settled = supervisor.guarded("answers to sends", partial(self._answer_settled, puts))
            self.when_settled(puts[-1].run, wait, settled)

    async def _answer_confirmed(self, puts: list[Put]) -> None:
        self._answer_settled(puts, await self._confirmed(puts[-1].run, wait=True))

    def _answer_settled(self, puts: list[Put], status: PutStatus) -> None:
        answer(puts, status, self._reason(status))

    def confirms_at_once(self, wait: bool) -> bool:
        """Return whether the status of a put is known as soon as it is written."""
        return self.config.flush_mode is FlushMode.ASYNC_FLUSH and not (wait and self.replicate)

    async def _confirmed(self, last: Run, wait: bool) -> PutStatus:
        """Wait for the flush and slaves as configured; return the status of all records up to this one."""
        # Called now, because whether there is a slave to wait for is decided when the record is appended.
        replicated = self.replicate(last.end) if wait and self.replicate else None
        status = await self.settle(last, wait)
        return status if replicated is None else results.put_status(status, await replicated)

    def _reason(self, status: PutStatus) -> str:
        return "" if status is PutStatus.PUT_OK else self.failure or _REASONS.get(status, "")

    def append(self, message: Message) -> Appended:
        """Write the message to the end of the log in the page cache; assign its queue offset.

        Raises:
            ValueError: the message cannot be stored; nothing was written. OSError: the disk failed.
        """
        (appended,) = described_records([message], self._append([message]))
        return appended

    def _append(self, messages: Sequence[Message]) -> Run:
        """Append messages of one queue in one segment, like `append`, with a single write.

        If the process dies, all of them are written or none. A crash of the machine may keep a prefix.
        """
        run = self._stage(messages)
        self._write()
        return run

    def append_replicated(self, records: Sequence[tuple[bytes, StoredMessage]]) -> None:
        """Write records of a master's log to the end of this one, in the page cache, and dispatch them.

        Those of one segment cost one write.

        Raises:
            OSError: the disk failed or is full, or a queue lacks the entries before these. The store is then
                read-only, unless the disk is full.
        """
        self._require_writable()
        try:
            staged = [self._stage_replicated(data, stored) for data, stored in records]
            self._log.write_staged()
            for appended in staged:
                if appended.queued and self._log.begin > 0:
                    self._begin_queue(appended)
                if self._events is not None:
                    emit_append(self._events, appended)
            self._dispatcher.run(self.confirm_offset(), self.on_arrival)
        except QueueGapError as error:
            self._fail(error)
            raise OSError(self.failure) from None
        except OSError as error:
            self._fail(error)
            raise
        if self.config.flush_mode is FlushMode.SYNC_FLUSH:
            self._flusher.want(self._log.end)  # it becomes visible only when it is durable

    def _stage_replicated(self, data: bytes, stored: StoredMessage) -> Appended:
        self._log.stage_stored(stored.commit_offset, data, stored.store_timestamp_ms)
        appended = appended_record(stored, self.config.delay_levels_ms)
        if self._deleted.has(appended.topic, appended.commit_offset):
            appended = msgspec.structs.replace(appended, queued=False)
        self._dispatcher.add(run_of(appended))
        return appended

    def _begin_queue(self, appended: Appended) -> None:
        """Let the queue begin at this record, if the log does not begin at 0 and the queue is empty."""
        queue = self._queues.find_or_make(appended.topic, appended.queue_id)
        if queue.end == 0 < appended.queue_offset:
            queue.begin_at(appended.queue_offset)

    def delete_topic(self, topic: str) -> None:
        """Remove the topic's queues durably; a topic recreated with this name begins at offset 0.

        Its messages stay in the log until they expire. No other put can happen during the deletion, so each
        message belongs to either the old or the new topic.

        Raises:
            OSError: the disk failed; if nothing was changed by then, the store stays writable.
        """
        self._end_turn()
        self._require_writable()
        if self._queues.has(topic) or self._appender.has(topic):
            self._forget({topic: self._log.end})

    def adopt_deletions(self, deleted: Mapping[str, int]) -> list[str]:
        newer = self._deleted.newer(deleted)
        if newer:
            self._require_writable()
            self._forget(newer)
        return list(newer)

    def awaits_deleted_records(self) -> bool:
        """Return whether a slave's log ends before all records that its master deleted have arrived."""
        return self._deleted.lies_beyond(self._log.end)

    def correct_deletions(self, deleted: Mapping[str, int]) -> None:
        """Correct the deletions beyond the end of a slave's log to those that the master has now.

        Call this before the slave follows. A master that lost the end of its log uses those commit offsets
        again. Raises OSError: the disk failed.
        """
        if earlier := self._deleted.taken_back(deleted, self._log.end):
            self._require_writable()
            self._deleted.add(earlier, self._log.begin)

    def _require_writable(self) -> None:
        if not self.writable:
            raise OSError(self.failure or "the store is not started, or its disk is nearly full")

    def _forget(self, deleted: Mapping[str, int]) -> None:
        """Record that topics were deleted, and remove their queues up to the given commit offsets."""
        self._deleted.add(deleted, self._log.begin)
        try:
            for topic, before in deleted.items():
                self._dispatcher.forget(topic, before)
                self._appender.forget(topic)
                self._queues.remove(topic, before)
        except OSError as error:
            self._fail(error)
            raise
        self._checkpoint_writer.count_again()

    async def settle(self, appended: Appended | Run, wait: bool) -> PutStatus:
        """Return the status of a put; under SYNC_FLUSH, wait until the record is durable."""
        if self.config.flush_mode is FlushMode.ASYNC_FLUSH:
            return PutStatus.PUT_OK
        settled: asyncio.Future[PutStatus] = asyncio.get_running_loop().create_future()
        self.when_settled(
            appended, wait, lambda status: None if settled.done() else settled.set_result(status)
        )
        return await settled

    def when_settled(self, appended: Appended | Run, wait: bool, call: Callable[[PutStatus], None]) -> None:
        """Call the function with the status of a put; under SYNC_FLUSH, when the record is durable."""
        if self.config.flush_mode is FlushMode.ASYNC_FLUSH:
            call(PutStatus.PUT_OK)
        elif not wait:
            self._flusher.want(appended.end)  # it becomes visible only when it is durable
            call(PutStatus.PUT_OK)
        else:
            self._flusher.when_durable(
                appended.end,
                self.config.sync_flush_timeout_ms,
                lambda durable: call(PutStatus.PUT_OK if durable else PutStatus.FLUSH_DISK_TIMEOUT),
            )

    # -- steps

    def dispatch(self) -> int:
        """Dispatch the records that may be visible; return how many.

        A disk error or a missing queue entry makes the store read-only.
        """
        try:
            return self._dispatcher.run(self.confirm_offset(), self.on_arrival)
        except (OSError, QueueGapError) as error:
            self._fail(error)
            return 0

    def confirm_offset(self) -> int:
        """Return the commit offset up to which records may be visible; under SYNC_FLUSH, the durable end."""
        return self._log.flushed if self.config.flush_mode is FlushMode.SYNC_FLUSH else self._log.end

    def taken_end(self, topic: str, queue_id: int) -> int:
        """Return one more than the last offset in the queue that any client may have read.

        Under SYNC_FLUSH a record is visible here only when it is durable, but a client may have read it from
        a slave before.
        """
        if self.config.flush_mode is FlushMode.SYNC_FLUSH:
            return self.next_queue_offset(topic, queue_id)
        return super().taken_end(topic, queue_id)

    async def flush_log(self) -> None:
        """Make the log durable up to its current end; a disk error makes the store read-only."""
        await self._flusher.flush()

    # -- internal methods

    def _open_log(self) -> None:
        self._log.segments.load()

    def _recover(self, parts: Parts, abnormal: bool) -> Recovery:
        return recover(parts, abnormal)

    def next_queue_offset(self, topic: str, queue_id: int) -> int:
        """Return the offset that the queue's next message gets."""
        return self._appender.next_queue_offset(topic, queue_id)

    def _stage(self, messages: Sequence[Message]) -> Run:
        return self._appender.stage(messages, self.config)

    def _write(self) -> None:
        self._appender.write()
        self.on_append()

    def _flushed(self) -> None:
        self.dispatch()

    async def _make_all_durable(self) -> None:
        """Make everything durable for a clean exit; the flush of the log dispatches what it makes durable.

        The abort file is removed last, and only if no step failed.
        """
        self._end_turn()
        await self.flush_log()
        await self.flush_queues()
        await self.write_checkpoint()
        self._mark_clean()
