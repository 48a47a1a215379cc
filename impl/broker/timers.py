"""Delivery of messages at their time: the table of those that wait, finals, recalls, copies and points.

The timer queue and the log are the state; the table in memory is read from them when the broker starts or
becomes a master. See docs/reference/protocol/timers.md; spec/tla/Timers.tla has the same steps.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from mqproof.impl.broker import timed_messages
from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.waiting_timers import Waiting, WaitingTimers
from mqproof.impl.broker.timed_messages import POINT_QUEUE, TIMER_TOPIC, Point
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.store.base import Store
from mqproof.impl.store.results import PERHAPS_STORED, STORED, PutResult, PutStatus
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

_BATCH: Final = 32
"""The most records read or stored in one step, before other coroutines run."""
_PUTS_MAX: Final = 1024
"""The most finals whose status is not known yet."""
_LOOK_AGAIN_S: Final = 1.0
"""The longest sleep while a message waits, because the clock may have been set."""
_IDLE_S: Final = 60.0
_RETRY_S: Final = 1.0
_BUSY_S: Final = 0.001
LOG_READER: Final = "timers"
"""The name under which a store keeps the records that timers need."""
_POINT_S: Final = 3.0
"""The pause between two points, if anything changed."""
_ROLL_S: Final = 1.0
"""The pause between two searches for messages that prevent the deletion of old segments."""
_ROLLS_MAX: Final = 1024
"""The most copies that one such search appends."""
_POINTS_SOUGHT: Final = 64
"""How many records of the point queue are read to find a valid point."""


class Timers:
    """The messages of one broker that wait for a time. While `run` runs, the broker delivers them."""

    def __init__(self, store: Store, holds: PullHolds, events: EventLog | None = None) -> None:
        self._store = store
        self._holds = holds
        self._events = events
        self._table = WaitingTimers()
        self._is_ready = False
        self._puts = 0
        self._has_failed = False
        self._written: tuple[tuple[int, int], int] | None = None
        """The changes and the read end of the table that its last point covers, and the point's offset."""
        self._address = Address("127.0.0.1", 0)
        self._point_due = asyncio.Event()
        self._roll_due = asyncio.Event()

    @property
    def waiting_count(self) -> int:
        """The number of messages that wait, with those that were not read yet."""
        return len(self._table) + max(0, self._store.max_offset(TIMER_TOPIC, 0) - self._table.read_end)

    async def run(self, address: Address, before: Callable[[], Point | None]) -> None:
        """Read the state, then deliver, roll and write points until cancelled.

        `before` returns the progress of a released broker; it is used while the log has no point.
        """
        self._address = address
        self._store.keep_log_from(LOG_READER, self._needed_from)
        try:
            while True:
                try:
                    await self._read(before)
                    break
                except (OSError, ValueError) as error:
                    _log.error("the timer queue cannot be read, and is tried again: %s", error)
                    await asyncio.sleep(_RETRY_S)
            self._is_ready = True
            await asyncio.gather(
                self._forever(self._deliver),
                self._whenever(self._point_due, self._write_point, _POINT_S),
                self._whenever(self._roll_due, self._roll, _ROLL_S),
            )
        finally:
            self._is_ready = False
            self.follow()

    def follow(self) -> None:
        """Keep the records that the delivering broker needs, as its points say; `run` ends this."""
        self._store.keep_log_from(LOG_READER, self._needed_by_point)

    # -- reading

    async def _read(self, before: Callable[[], Point | None]) -> None:
        """Build the table from the timer queue, the last point, and the log after it."""
        store, table = self._store, WaitingTimers()
        self._table, self._written = table, None
        end = store.max_offset(TIMER_TOPIC, 0)
        point = self._last_point() or before() or Point()
        table.read_end = min(max(point.first, store.min_offset(TIMER_TOPIC, 0)), end)
        while table.read_end < end:
            until = min(table.read_end + _BATCH, end)
            for place in range(table.read_end, until):
                self._take(table, place, is_first=True, point=point)
            table.read_end = until
            await asyncio.sleep(0)
        await self._scan(table, point.scan_from)

    def _last_point(self) -> Point | None:
        return next((point for _, point in self._points()), None)

    def _points(self) -> Iterator[tuple[int, Point]]:
        """Yield the latest points with their commit offsets, the last one first."""
        end = self._store.max_offset(TIMER_TOPIC, POINT_QUEUE)
        least = max(self._store.min_offset(TIMER_TOPIC, POINT_QUEUE), end - _POINTS_SOUGHT)
        for offset in range(end - 1, least - 1, -1):
            stored = self._stored(POINT_QUEUE, offset)
            if stored is not None and (point := timed_messages.point_of(stored.message)) is not None:
                yield stored.commit_offset, point

    async def _scan(self, table: WaitingTimers, scan_from: int) -> None:
        """Remove the messages whose finals are in the log and not covered by the point."""
        oldest = table.oldest()
        if oldest is None:
            return
        first = min(waiting.commit_offset for waiting in table.all_waiting())
        for number, stored in enumerate(self._store.records_from(max(scan_from, first))):
            at = timed_messages.waiting_offset(stored.message)
            waits = None if at is None else self._waiting_at(at)
            if waits is not None and timed_messages.is_final_of(stored.message, waits.message):
                table.finish(timed_messages.original_of(waits), stored.commit_offset)
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    def _catch_up(self) -> None:
        """Add the messages that were stored after those in the table."""
        table, end = self._table, self._store.max_offset(TIMER_TOPIC, 0)
        while table.read_end < end:
            self._take(table, table.read_end)
            table.read_end += 1

    def _take(
        self, table: WaitingTimers, place: int, *, is_first: bool = False, point: Point | None = None
    ) -> None:
        """Add a record of the timer queue to the table. One that is invalid must not stop the others."""
        stored = self._stored(0, place)
        if stored is None:
            return
        recalled = timed_messages.recalled_by(stored.message)
        if recalled is not None:
            for waiting in table.named(recalled):
                table.finish(waiting.original, stored.commit_offset)
            return
        due_ms = timed_messages.due_ms_of(stored.message)
        if due_ms is None:
            _log.error("message %d of the timer queue has no time, and is left out", place)
            return
        if point is not None and place < point.read_end and due_ms <= point.due_ms:
            return
        waiting = Waiting(
            timed_messages.original_of(stored),
            place,
            stored.commit_offset,
            due_ms,
            timed_messages.key_of(stored.message),
        )
        if is_first:
            table.add_read(waiting)
        else:
            table.add(waiting)

    def _stored(self, queue_id: int, offset: int) -> StoredMessage | None:
        at = self._store.commit_offset_at(TIMER_TOPIC, queue_id, offset)
        stored = None if at is None else self._waiting_at(at)
        if stored is None:
            _log.error("message %d of queue %d of %s cannot be read", offset, queue_id, TIMER_TOPIC)
        return stored

    def _waiting_at(self, commit_offset: int) -> StoredMessage | None:
        """Return the record at a commit offset; None if there is none, or it is not of the timer topic."""
        stored = self._store.stored_at(commit_offset)
        return stored if stored is not None and stored.message.topic == TIMER_TOPIC else None

    # -- delivery

    async def _deliver(self) -> None:
        """Store the finals of messages that are due, or wait for the next one."""
        self._catch_up()
        self._notice_due_work()
        store, table = self._store, self._table
        if self._has_failed or not store.writable:
            self._has_failed = False
            await asyncio.sleep(_RETRY_S)
            return
        if self._puts >= _PUTS_MAX:
            await asyncio.sleep(_BUSY_S)
            return
        now_ms = store.now_ms()
        due = table.take_due(now_ms, _BATCH, store.next_commit_offset)
        for number, waiting in enumerate(due):
            try:
                self._put_final(table, waiting)
            except OSError:  # the disk cannot be read
                for each in due[number:]:
                    table.release(each.original)
                raise
        if due:
            await asyncio.sleep(0)
            return
        next_ms = table.next_due_ms()
        wait_s = _LOOK_AGAIN_S if table.read_end else _IDLE_S
        woken = self._holds.hold(TIMER_TOPIC, 0, table.read_end, (), wait_s)
        if next_ms is None:
            await woken
        else:
            await upkeep.until_due(woken, max((next_ms - now_ms) / 1000, _BUSY_S))

    def _put_final(self, table: WaitingTimers, waiting: Waiting) -> None:
        message = self._final(waiting)
        if message is None:
            table.finish(waiting.original, None)
            return
        self._puts += 1

        def done(results: list[PutResult]) -> None:
            self._puts -= 1
            result = results[0]
            if result.status in STORED:
                table.finish(waiting.original, result.commit_offset)
            elif result.status is PutStatus.MESSAGE_ILLEGAL:
                _log.error("message %d of the timer queue is dropped: %s", waiting.place, result.reason)
                table.finish(waiting.original, None)
            else:
                self._has_failed = True
                table.release(waiting.original)
                if result.status in PERHAPS_STORED:
                    self._emit(Kind.RETRY, message, result.status)

        self._store.put_soon([message], done, wait=False)

    def _final(self, waiting: Waiting) -> Message | None:
        """Return the message to store; None where there is nothing to store."""
        stored = self._waiting_at(waiting.commit_offset)
        if stored is None:
            _log.error("the message at %d, which waits for its time, is gone", waiting.commit_offset)
            return None
        try:
            message = timed_messages.final(stored, self._address)
        except ValueError as error:
            _log.error("message %d of the timer queue is dropped: %s", waiting.place, error)
            return None
        return None if message.topic in NOT_FOR_CLIENTS else message

    # -- recalls

    async def recall(self, handle: RecallHandle, group: str | None) -> PutResult:
        """Withdraw a message that waits; return the result of its record.

        Raises:
            RefusedError: the broker is not ready, no such message waits, or it is being delivered or rolled.
        """
        if not self._is_ready:
            raise RefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker is reading its timers")
        self._catch_up()
        store, table = self._store, self._table
        found = table.named((handle.topic, handle.key))
        if not found:
            raise RefusedError(ResponseCode.ILLEGAL_OPERATION, "recall failed, no such message waits")
        held = [one for one in found if table.hold(one.original, store.next_commit_offset)]
        try:
            if len(held) < len(found):
                raise RefusedError(ResponseCode.SYSTEM_BUSY, "the message is being moved: ask again")
            message = timed_messages.recall(handle, group, store.now_ms(), self._address)
            result = await store.put(message)
            if result.status in STORED:
                for one in held:
                    table.finish(one.original, result.commit_offset)
                self._emit(Kind.RECALL, message, result.status)
            return result
        finally:
            for one in held:
                table.release(one.original)

    # -- points, and the deletion of old records

    async def _write_point(self) -> None:
        table, store = self._table, self._store
        self._catch_up()
        if not store.writable or not self._is_point_due():
            return
        covered = (table.changes, table.read_end)
        point = table.point(store.now_ms(), store.next_commit_offset)
        result = await store.put(timed_messages.point(point, store.now_ms(), self._address), wait=False)
        if result.status not in STORED:
            raise OSError(f"no point could be stored: {result.status} {result.reason}")
        self._written = covered, result.commit_offset

    def _is_point_due(self) -> bool:
        """Return whether a point would cover more than the last one, or let records be deleted."""
        table, written = self._table, self._written
        is_due = (
            written is None
            or written[0] != (table.changes, table.read_end)
            or written[1] < self._store.log_wanted_before
        )
        return table.read_end > 0 and is_due

    async def _roll(self) -> None:
        """Append copies of the messages in segments that are to be deleted."""
        store, table = self._store, self._table
        if not store.writable:
            return
        self._catch_up()
        for waiting in table.older_than(store.log_wanted_before, _ROLLS_MAX):
            stored = self._waiting_at(waiting.commit_offset)
            if stored is None:
                _log.error("the message at %d, which waits for its time, is gone", waiting.commit_offset)
                table.finish(waiting.original, None)
                continue
            if not table.hold(waiting.original, store.next_commit_offset):
                continue
            result = await store.put(timed_messages.rolled(stored, self._address))
            if result.status not in STORED:
                table.release(waiting.original)
                raise OSError(f"no copy could be stored: {result.status} {result.reason}")
            self._catch_up()  # the copy ends the hold

    def _needed_from(self) -> int | None:
        if not self._is_ready:
            return self._store.log_begin
        needed = self._table.needed_from(self._store.log_flushed)
        unread = self._store.commit_offset_at(TIMER_TOPIC, 0, self._table.read_end)
        return min((at for at in (needed, unread) if at is not None), default=None)

    def _needed_by_point(self) -> int | None:
        """Return the first record that the last durable point needs; None if there is no such point.

        The delivering broker appends copies of the messages whose segments it wants to delete, and then a
        point. Until both arrive, this broker keeps the originals: it may have to deliver them.
        """
        store = self._store
        durable = (point for at, point in self._points() if at < store.log_flushed)
        point = next(durable, None)
        if point is None:
            return None
        first = max(point.first, store.min_offset(TIMER_TOPIC, 0))
        return store.commit_offset_at(TIMER_TOPIC, 0, first)

    # -- running

    async def _forever(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (OSError, ValueError) as error:
                _log.error("the work on timers failed, and is tried again: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _whenever(
        self, due: asyncio.Event, work: Callable[[], Awaitable[None]], seconds: float
    ) -> None:
        """Do the work some time after it became due."""

        async def once() -> None:
            await due.wait()
            await upkeep.sleep(seconds)
            due.clear()
            await work()

        await self._forever(once)

    def _notice_due_work(self) -> None:
        """Set the events of the other work. Delivery calls this once a second: the others need no timer."""
        if self._is_point_due():
            self._point_due.set()
        if self._store.log_wanted_before:
            self._roll_due.set()

    def _emit(self, kind: Kind, message: Message, status: PutStatus) -> None:
        if self._events is not None:
            topic = message.properties.get("REAL_TOPIC", message.topic)
            self._events.emit(
                kind, msg_id=message.properties.get(UNIQUE_KEY), topic=topic, status=status.value
            )
