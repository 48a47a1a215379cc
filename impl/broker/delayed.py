"""Delivery of delayed messages: each is stored in its own topic and queue when it is due.

The messages of a level wait in one queue, ordered by due time. Each level therefore has one reader, which
sleeps until the first message is due or until one arrives. Messages that are due together are stored with one
write. The progress of each level is in delayOffset.json.
The file is written only after the log was flushed, so that no crash can undo a delivery that the file
records. See docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.durable_table import read_config
from mqproof.impl.broker.state.unwritten import Unwritten
from mqproof.impl.remoting.java_json import write
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, StoredMessage
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS
from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.event_log import EventLog
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.base import Store
from mqproof.impl.store.damage import DamageReport
from mqproof.impl.store.delay import SCHEDULE_TOPIC, due
from mqproof.impl.store.files.consume_queue import Unit
from mqproof.impl.store.files.sealed_file import write_sealed
from mqproof.impl.store.results import PERHAPS_STORED, STORED, PutResult, PutStatus
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

LEVELS_MAX: Final = 18
"""The number of queues of the schedule topic, whatever levels are configured."""

_READER: Final = "delayed messages"
_BATCH: Final = 64
"""The most messages stored in one step, before other coroutines run."""
_BATCH_BYTES: Final = 1 << 20
"""A step ends after the message with which its records have as many bytes."""
_LOOK_AGAIN_S: Final = 1.0
"""The longest sleep while a message waits, because the clock may have been set."""
_IDLE_S: Final = 60.0
"""The longest wait for an arrival; it limits the delay if an arrival is not notified."""
_RETRY_S: Final = 1.0


Ended = Callable[[Message | None, PutStatus], None]
"""Called once with the message that was put, or None if there was nothing to put, and the status."""
_DONE: Final = frozenset({PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL})
"""The statuses after which a message is not put again."""


class DelayOffsets(msgspec.Struct, rename="camel"):
    """The content of delayOffset.json, and the body of GET_ALL_DELAY_OFFSET."""

    offset_table: dict[int, int] = {}
    """Maps each level to the offset of the next message to deliver."""


class DelayedDelivery:
    """The delivery of all levels. `run` delivers until it is cancelled; `persist` writes the progress."""

    def __init__(
        self, path: str, store: Store, holds: PullHolds, runtime: Runtime, events: EventLog | None = None
    ) -> None:
        self._path = path
        self._store = store
        self._holds = holds
        self._runtime = runtime
        self._events = events
        self._next: dict[int, int] = {}
        self._unwritten = Unwritten()
        self._counted: dict[int, int] = {}
        """The offsets that the file has."""
        self._delivers = True
        store.keep_log_from(_READER, self._needed_from)

    def load(self, damage: DamageReport | None = None, *, required: bool = False) -> None:
        """Read delayOffset.json, if it exists. If it does not, `persist` writes it.

        Raises:
            StoreError: the file is not a table of offsets, or is required and missing. OSError: it cannot be
                read.
        """
        stored = read_config(self._runtime.disk, self._path, DelayOffsets, damage, required=required)
        self._unwritten.is_any = stored is None
        self._next = dict(stored.offset_table) if stored else {}
        self._counted = dict(self._next)

    def offsets(self) -> DelayOffsets:
        """Return the next offset of each level that has delivered."""
        return DelayOffsets(dict(self._next))

    def adopt(self, offsets: Mapping[int, int]) -> None:
        """Replace the offsets by a master's; a slave does not deliver messages itself."""
        if offsets and dict(offsets) != self._next:
            self._next = dict(offsets)
            self._unwritten.is_any = True

    def follow(self) -> None:
        """Let another broker deliver; `run` ends this."""
        self._delivers = False

    def cut(self) -> None:
        """Lower the offsets to the ends of their queues, which may have lost messages; `persist` writes them.

        Otherwise the next messages of such a queue would count as delivered.
        """
        for level, offset in self._next.items():
            end = self._store.max_offset(SCHEDULE_TOPIC, level - 1)
            if offset > end:
                self._next[level] = end
                self._unwritten.is_any = True

    async def run(self, address: Address) -> None:
        """Deliver the messages of all levels until cancelled; `address` becomes their store host."""
        self._delivers = True
        try:
            await self._run(address)
        finally:
            self.follow()

    async def _run(self, address: Address) -> None:
        self.cut()
        try:
            await self.persist()
        except OSError as error:  # it is written again later
            _log.error("the offsets of delayed messages cannot be written to disk: %s", error)
        await asyncio.gather(*(self._deliver(level, address) for level in range(1, LEVELS_MAX + 1)))

    async def persist(self) -> None:
        """Write the file if anything was delivered since the last write. Raises OSError when that fails.

        After a failure or a cancellation, the next call writes again.
        """
        if not self._unwritten.is_any:
            return
        offsets = self.offsets()
        data = write(offsets)
        with self._unwritten.writing():
            if self._next:
                await self._store.flush_log()
                if self._store.failure:
                    raise OSError(self._store.failure)
            await self._runtime.offload(lambda: write_sealed(self._runtime.disk, self._path, data))
        self._counted = offsets.offset_table

    def _needed_from(self) -> int | None:
        """Return the commit offset of the first message that is needed, of all levels; None if none is."""
        found = (
            self._store.commit_offset_at(SCHEDULE_TOPIC, level - 1, self._first_needed(level))
            for level in range(1, LEVELS_MAX + 1)
        )
        return min((at for at in found if at is not None), default=None)

    def _first_needed(self, level: int) -> int:
        """Return the offset of the first message of the level that this broker may have to deliver.

        Those before it count as delivered in the file. While another broker delivers, they are due.
        """
        queue_id = level - 1
        first = self._store.min_offset(SCHEDULE_TOPIC, queue_id)
        if self._delivers:
            return max(first, self._counted.get(level, 0))
        waiting = range(first, self._store.max_offset(SCHEDULE_TOPIC, queue_id))
        return first + bisect_right(waiting, self._store.now_ms(), key=lambda at: self._due_ms(queue_id, at))

    def _due_ms(self, queue_id: int, offset: int) -> int:
        unit = self._store.unit(SCHEDULE_TOPIC, queue_id, offset)
        return unit.tags_code if unit is not None else 0

    async def _deliver(self, level: int, address: Address) -> None:
        while True:
            try:
                await self._step(level, address)
            except OSError as error:
                _log.error("the delivery of delay level %d has stopped: %s", level, error)
                await asyncio.sleep(_RETRY_S)

    async def _step(self, level: int, address: Address) -> None:
        """Wait for the first message of the level, or deliver those that are due."""
        store, queue_id = self._store, level - 1
        offset = max(self._next.get(level, 0), store.min_offset(SCHEDULE_TOPIC, queue_id))
        count = len(store.units(SCHEDULE_TOPIC, queue_id, offset, _BATCH))
        if not count:
            await self._holds.hold(SCHEDULE_TOPIC, queue_id, offset, (), _IDLE_S)
            return
        messages, wait_ms = self._due(level, range(offset, offset + count))
        if not messages:
            await upkeep.until_due(upkeep.after(_LOOK_AGAIN_S), max(wait_ms, 1) / 1000)
            return
        puts = _Puts(offset, partial(self._advance, level))
        for stored in messages:
            if puts.has_failed:
                break
            ended = puts.begin()
            if stored is None:
                ended(None, PutStatus.MESSAGE_ILLEGAL)
            else:
                self._put(stored, address, ended)
        for message, status in await puts.failed():
            if message is not None and status in STORED | PERHAPS_STORED:
                self._emit_retry(message, status)
        if puts.has_failed:
            await asyncio.sleep(_RETRY_S)

    def _due(self, level: int, offsets: range) -> tuple[list[StoredMessage | None], int]:
        """Return the messages at these offsets of a level that are due, and how long the next one waits.

        None stands for a damaged message. Its due time could hold back the whole level, or deliver too early.
        """
        now_ms, messages, left = self._store.now_ms(), list[StoredMessage | None](), _BATCH_BYTES
        for offset in offsets:
            found = self._store.entry(SCHEDULE_TOPIC, level - 1, offset)
            if found is None:
                _log.error(
                    "the delayed message at offset %d of level %d is damaged and left out", offset, level
                )
                messages.append(None)
                continue
            unit, stored = found
            if not is_due(unit, now_ms):
                return messages, unit.tags_code - now_ms
            messages.append(stored)
            left -= stored.size
            if left <= 0:
                break
        return messages, 0

    def _advance(self, level: int, offset: int) -> int:
        """Record that the message at this offset of a level is done; return the next offset."""
        self._next[level] = offset + 1
        self._unwritten.is_any = True
        return offset + 1

    def _put(self, stored: StoredMessage, address: Address, ended: Ended) -> None:
        """Store a message in its own topic and queue, together with the other puts of this turn."""
        message = self._message(stored)
        if message is None:
            ended(None, PutStatus.MESSAGE_ILLEGAL)
            return

        def settled(results: list[PutResult]) -> None:
            (result,) = results
            if result.status is PutStatus.MESSAGE_ILLEGAL:
                _log.error("a delayed message for topic %s is dropped: %s", message.topic, result.reason)
            ended(message, result.status)

        self._store.put_soon([replace(message, store_host=address)], settled, wait=False)

    def _emit_retry(self, message: Message, status: PutStatus) -> None:
        """Emit an event: the message will be stored once more, so it may exist twice."""
        if self._events is not None:
            self._events.emit(
                Kind.RETRY,
                msg_id=message.properties.get(UNIQUE_KEY),
                topic=message.topic,
                queue_id=message.queue_id,
                status=status.value,
            )

    def _message(self, stored: StoredMessage) -> Message | None:
        """Return the message to store; None where there is nothing to store."""
        try:
            message = due(stored.message)
        except ValueError as error:
            _log.error("the delayed message at %d is dropped: %s", stored.commit_offset, error)
            return None
        return None if message.topic in NOT_FOR_CLIENTS else message


class _Puts:
    """The puts of one step of a level, in the order of the level, from an offset on.

    `advance` is called for the offset of each put, when it and all before it are done.
    """

    def __init__(self, offset: int, advance: Callable[[int], int]) -> None:
        self.has_failed = False
        self._advance = advance
        self._first = offset
        """The offset of the first put that is not done."""
        self._end = offset
        self._ended: dict[int, tuple[Message | None, PutStatus]] = {}
        """The puts from the first one on that have ended, by offset."""
        self._all_ended: asyncio.Future[None] | None = None

    def begin(self) -> Ended:
        """Return the callback for the put of the next message."""
        self._end += 1
        return partial(self._note, self._end - 1)

    async def failed(self) -> list[tuple[Message | None, PutStatus]]:
        """Wait until all puts have ended; return the first one that failed, and those after it."""
        if self._is_open:
            self._all_ended = asyncio.get_running_loop().create_future()
            await self._all_ended
        else:
            await asyncio.sleep(0)
        return [self._ended[offset] for offset in range(self._first, self._end)]

    @property
    def _is_open(self) -> bool:
        return len(self._ended) < self._end - self._first

    def _note(self, offset: int, message: Message | None, status: PutStatus) -> None:
        self._ended[offset] = message, status
        self.has_failed |= status not in _DONE
        while self._first in self._ended and self._ended[self._first][1] in _DONE:
            del self._ended[self._first]
            self._first = self._advance(self._first)
        if self._all_ended is not None and not self._is_open and not self._all_ended.done():
            self._all_ended.set_result(None)


def is_due(unit: Unit, now_ms: int) -> bool:
    """Return whether the time in the entry has come; a message is never delivered early."""
    return unit.tags_code <= now_ms
