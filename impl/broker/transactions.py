"""The ends of transactions: commits, rollbacks, checks, and the progress in the half queue.

The half queue and the log are the state; the table in memory is read from them when the broker starts or
becomes a master. See docs/reference/protocol/transactions.md; spec/tla/Transactions.tla has the same steps.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mqproof.impl.broker import half_messages
from mqproof.impl.broker.half_messages import HALF_TOPIC, OPERATION_TOPIC, PROGRESS_GROUP
from mqproof.impl.broker.state.kept_halves import KeptHalves
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.broker.state.open_transactions import End, HalfMessage, OpenTransactions, offsets_of
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import SYS_TRANSACTION_COMMIT, SYS_TRANSACTION_MASK, Message, StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.base import Store
from mqproof.impl.store.results import PERHAPS_STORED, STORED, PutResult, PutStatus
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_BATCH: Final = 32
"""The most records read in one step, before other coroutines run."""
_RETRY_S: Final = 1.0

Ask = Callable[[StoredMessage], None]
"""Sends the request of a check to a producer of the message's group."""


class Transactions:
    """The transactions of one broker. While `run` runs, the broker is a master and ends them."""

    def __init__(self, store: Store, events: EventLog | None = None) -> None:
        self._store = store
        self._events = events
        self._table = OpenTransactions()
        self._kept = KeptHalves()
        self._is_ready = False
        self._confirmed = True
        """Whether the last record written here was confirmed by disk and slaves."""
        self._operation_due = upkeep.Wakeup()
        self._address = Address("127.0.0.1", 0)

    @property
    def open_count(self) -> int:
        """The number of half messages that are not done, with those that were not read yet."""
        return len(self._table) + max(0, self._store.max_offset(HALF_TOPIC, 0) - self._table.read_end)

    async def run(
        self, address: Address, offsets: OffsetTable, ask: Ask, discard: Callable[[], Awaitable[object]], *,
        check_interval_ms: Callable[[], int], timeout_ms: Callable[[], int], checks_max: Callable[[], int],
        operation_interval_ms: int,
    ) -> None:  # fmt: skip
        """Read the state, then check and write operations until cancelled.

        `discard` creates the topic of discarded messages.
        """
        self._address = address
        try:
            await self._retried(lambda: self._read(offsets))
            self._is_ready = True
            await asyncio.gather(
                self._every(
                    operation_interval_ms, lambda: self._write_and_advance(offsets), self._operation_due
                ),
                self._check_forever(
                    check_interval_ms, lambda: self._check_all(timeout_ms(), checks_max(), ask, discard)
                ),
            )
        finally:
            self._is_ready = False

    # -- requests

    def note_half(self, message: Message, result: PutResult) -> None:
        """Keep a half message that is stored, and emit its event."""
        self._emit(Kind.HALF, message)
        if self._is_ready:
            place, at = result.queue_offset, result.commit_offset
            half = StoredMessage(message, place, at, result.store_timestamp_ms, result.stored_bytes, 0)
            self._kept.keep(half)
            if self._table.read_end == place < self._store.max_offset(HALF_TOPIC, 0):
                self._table.add(_half_message(half))
                self._table.read_end = place + 1

    def end(self, stored: StoredMessage, end: End, done: Callable[[PutStatus | None, str], None]) -> None:
        """End the transaction of a half message; `done` gets the put status of a commit, else None.

        Raises:
            RefusedError: the broker is not ready, or the transaction has ended in another way.
        """
        if not self._is_ready:
            raise RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker is reading its transactions")
        self._catch_up()
        original, table = half_messages.original_of(stored), self._table
        if table.find(original) is None:
            if table.known_end(original) is not end:
                remark = "is ending" if table.is_ending(original) else "has ended"
                raise RefusedError(ResponseCode.SYSTEM_ERROR, f"the transaction {remark} already")
            done(None, "")
        elif end is End.ROLLBACK:
            self._emit(Kind.ROLLBACK, stored.message)
            self._kept.drop(stored.commit_offset)
            self._ended(table, original, end)
            done(None, "")
        else:
            self._commit(stored, original, done)

    def _commit(
        self, stored: StoredMessage, original: int, done: Callable[[PutStatus | None, str], None]
    ) -> None:
        try:
            message = half_messages.final(stored, self._address)
        except ValueError as error:
            raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
        table = self._table  # a later leadership has another one
        table.begin(original, self._store.next_commit_offset)
        if self._store.writable:
            self._emit(Kind.COMMIT, stored.message)

        def put(results: list[PutResult]) -> None:
            result = results[0]
            if result.status in STORED or result.status in PERHAPS_STORED:
                self._kept.drop(stored.commit_offset)
                self._ended(table, original, End.COMMIT)
            else:
                table.give_back(original)
            done(result.status, result.reason)

        self._store.put_soon([message], put)

    def _ended(self, table: OpenTransactions, original: int, end: End) -> None:
        table.end(original, end, self._store.next_commit_offset)
        if table.awaiting_count * 8 >= half_messages.OPERATION_BYTES_MAX:
            self._operation_due.set()

    def half_at(self, commit_offset: int, topic: str = HALF_TOPIC) -> StoredMessage | None:
        """Return the half message at a commit offset; None if there is another message or none."""
        if topic == HALF_TOPIC and (kept := self._kept.find(commit_offset)) is not None:
            return kept
        stored = self._store.stored_at(commit_offset)
        return stored if stored is not None and stored.message.topic == topic else None

    # -- reading

    async def _read(self, offsets: OffsetTable) -> None:
        """Build the table from the queues and the end of the log."""
        store, self._table, self._kept = self._store, OpenTransactions(), KeptHalves()
        table = self._table
        start = offsets.query(PROGRESS_GROUP, HALF_TOPIC, 0) or 0
        end = store.max_offset(HALF_TOPIC, 0)
        if start > end:  # the progress of a master that had more of the log; new messages get those places
            start = 0
            offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, 0)
            offsets.commit(PROGRESS_GROUP, OPERATION_TOPIC, 0, 0)
        table.read_end = min(max(start, store.min_offset(HALF_TOPIC, 0)), end)
        places: dict[int, int] = {}
        while table.read_end < end:
            for half in self._halves(table.read_end, table.read_end + _BATCH):
                table.add_read(half)
                places[half.place] = half.original
            table.read_end = min(table.read_end + _BATCH, end)
            await asyncio.sleep(0)
        scan_from = await self._read_operations(offsets, places)
        await self._scan(scan_from)

    async def _read_operations(self, offsets: OffsetTable, places: dict[int, int]) -> int:
        """Remove what operations mark as done; return from where the log may have other ends."""
        store, table, scan_from = self._store, self._table, 0
        end = store.max_offset(OPERATION_TOPIC, 0)
        start = min(offsets.query(PROGRESS_GROUP, OPERATION_TOPIC, 0) or 0, max(end - 1, 0))
        for offset in range(max(start, store.min_offset(OPERATION_TOPIC, 0)), end):
            message = self._message(OPERATION_TOPIC, offset)
            if message is not None:
                done = half_messages.done_by(message.message)
                for place in done:
                    table.drop(places.get(place, place))
                table.note_operation(offset, max(done, default=-1))
                scan_from = half_messages.scan_from(message.message) or 0
            if offset % _BATCH == 0:
                await asyncio.sleep(0)
        return scan_from

    async def _scan(self, position: int) -> None:
        """End the transactions whose final or discarded messages are in the log without an operation."""
        first = min((half.commit_offset for half in self._table.all_halves()), default=None)
        if first is None:
            return
        for number, stored in enumerate(self._store.records_from(max(position, first))):
            message = stored.message
            if message.topic == half_messages.DISCARD_TOPIC:
                self._end_read(half_messages.original_of(stored), End.DISCARD, stored.commit_offset)
            elif message.sys_flag & SYS_TRANSACTION_MASK == SYS_TRANSACTION_COMMIT:
                half = self.half_at(message.prepared_transaction_offset)
                if half is not None and half_messages.is_final_of(message, half.message):
                    self._end_read(half_messages.original_of(half), End.COMMIT, stored.commit_offset)
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    def _end_read(self, original: int, end: End, commit_offset: int) -> None:
        if self._table.find(original) is not None:
            self._table.end(original, end, commit_offset)

    def _catch_up(self) -> None:
        """Add the half messages that have been stored since."""
        end = self._store.max_offset(HALF_TOPIC, 0)
        while self._table.read_end < end:
            until = min(self._table.read_end + _BATCH, end)
            for half in self._halves(self._table.read_end, until):
                self._table.add(half)
            self._table.read_end = until

    def _halves(self, begin: int, end: int) -> list[HalfMessage]:
        found = (self._message(HALF_TOPIC, place) for place in range(begin, end))
        return [_half_message(stored) for stored in found if stored is not None]

    def _message(self, topic: str, offset: int) -> StoredMessage | None:
        """Return a message of an internal queue. One that cannot be read must not stop the others."""
        at = self._store.commit_offset_at(topic, 0, offset)
        stored = None if at is None else self.half_at(at, topic)
        if stored is None and offset < self._store.max_offset(topic, 0):
            _log.error("message %d of %s cannot be read", offset, topic)
        return stored

    # -- checks

    async def _check_all(
        self, timeout_ms: int, checks_max: int, ask: Ask, discard: Callable[[], Awaitable[object]]
    ) -> None:
        if not self._store.writable:
            return  # every check would fail, and there may be very many
        self._catch_up()
        now_ms = self._store.now_ms()
        # The record of a half message must not expire before it is checked.
        immunity_ms_max = self._store.config.file_reserved_ms // 2
        for half in self._table.open_halves():
            due = is_due(half, now_ms, timeout_ms, immunity_ms_max)
            if not due or self._table.find(half.original) != half:
                continue
            try:
                stored = self.half_at(half.commit_offset)
                if stored is None:
                    _log.error("half message %d does not exist any more", half.place)
                    self._table.drop(half.original)
                elif half.times >= checks_max:
                    await discard()
                    await self._discard(half, stored)
                else:
                    await self._check(half, stored, ask)
            except (OSError, ValueError, RefusedError) as error:
                _log.error("the check of half message %d failed: %s", half.place, error)

    async def _check(self, half: HalfMessage, stored: StoredMessage, ask: Ask) -> None:
        """Append a copy with the number of checks, and ask a producer."""
        copy = half_messages.checked_copy(stored, self._address)
        self._table.hold(half.original)
        try:
            result = await self._put(copy)
            if result.status in STORED:
                self._catch_up()
                now_ms = self._store.now_ms()
                places = {"place": result.queue_offset, "commit_offset": result.commit_offset}
                self._table.add(half._replace(**places, times=half.times + 1, stored_ms=now_ms))
                self._kept.drop(half.commit_offset)
        finally:
            self._table.release(half.original)
        if result.status not in STORED:
            raise OSError(f"no copy could be stored: {result.status} {result.reason}")
        if self._table.find(half.original) is None:
            return  # it ended in the meantime
        self._emit(Kind.CHECK, copy)
        ask(StoredMessage(copy, result.queue_offset, result.commit_offset, now_ms, 0, 0))

    async def _discard(self, half: HalfMessage, stored: StoredMessage) -> None:
        if self._table.find(half.original) is None:
            return
        _log.warning("half message %d is not checked any more, after %d checks", half.place, half.times)
        self._table.begin(half.original, self._store.next_commit_offset)
        result = await self._put(half_messages.discarded(stored, self._address))
        if result.status in STORED or result.status in PERHAPS_STORED:
            self._ended(self._table, half.original, End.DISCARD)
        else:
            self._table.give_back(half.original)
            raise OSError(f"it could not be discarded: {result.status} {result.reason}")

    # -- operations and progress

    async def _write_and_advance(self, offsets: OffsetTable) -> None:
        self._operation_due.clear()
        while self._table.awaits_operation:
            await self._write_operation()
        await self._advance(offsets)

    async def _write_operation(self) -> None:
        recorded = self._table.without_operation(half_messages.OPERATION_BYTES_MAX)
        scan_from = self._table.scan_from(recorded, self._store.next_commit_offset)
        now_ms, places = self._store.now_ms(), offsets_of(recorded)
        result = await self._put(half_messages.operation(places, scan_from, now_ms, self._address))
        if result.status not in STORED:
            raise OSError(f"operations could not be stored: {result.status} {result.reason}")
        self._table.operation_stored(result.queue_offset, recorded)

    async def _advance(self, offsets: OffsetTable) -> None:
        """Store the progress that the log shows, once that part of the log is durable."""
        if not self._confirmed:
            return
        half, operation = self._table.progress(self._store.max_offset(OPERATION_TOPIC, 0))
        if half == (offsets.query(PROGRESS_GROUP, HALF_TOPIC, 0) or 0):
            return
        await self._store.flush_log()
        if self._store.failure:
            raise OSError(self._store.failure)
        offsets.commit(PROGRESS_GROUP, HALF_TOPIC, 0, half)
        offsets.commit(PROGRESS_GROUP, OPERATION_TOPIC, 0, operation)

    async def _put(self, message: Message) -> PutResult:
        result = await self._store.put(message)
        self._confirmed = result.status is PutStatus.PUT_OK
        return result

    # -- running

    async def _check_forever(
        self, interval_ms: Callable[[], int], check: Callable[[], Awaitable[None]]
    ) -> None:
        while True:
            await upkeep.sleep(interval_ms() / 1000)
            await self._retried(check)

    async def _every(self, ms: int, work: Callable[[], Awaitable[None]], early: upkeep.Wakeup) -> None:
        while True:
            await early.within(ms / 1000)
            await self._retried(work)

    async def _retried(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (OSError, ValueError, RefusedError) as error:
                _log.error("the work on transactions failed, and is tried again: %s", error)
                await asyncio.sleep(_RETRY_S)
            else:
                return

    def _emit(self, kind: Kind, half: Message) -> None:
        if self._events is not None:
            topic, _ = half_messages.real_queue(half)
            self._events.emit(kind, msg_id=half_messages.key_of(half), topic=topic)


def is_due(half: HalfMessage, now_ms: int, timeout_ms: int, immunity_ms_max: int) -> bool:
    """Return whether the immunity time is over; a copy was written after it was."""
    immunity_ms = timeout_ms if half.immunity_ms is None else half.immunity_ms
    return half.times > 0 or now_ms - half.stored_ms >= min(immunity_ms, immunity_ms_max)


def _half_message(stored: StoredMessage) -> HalfMessage:
    message = stored.message
    return HalfMessage(
        original=half_messages.original_of(stored),
        place=stored.queue_offset,
        commit_offset=stored.commit_offset,
        times=half_messages.check_times(message),
        stored_ms=stored.store_timestamp_ms,
        immunity_ms=half_messages.immunity_ms(message),
    )
