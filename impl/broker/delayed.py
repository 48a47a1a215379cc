"""Delivery of delayed messages: each is stored in its own topic and queue when it is due.

The messages of a level wait in one queue, ordered by due time. Each level therefore has one reader, which
sleeps until the first message is due or until one arrives. The progress of each level is in delayOffset.json.
The file is written only after the log was flushed, so that no crash can undo a delivery that the file
records. See docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.broker.state.durable_table import read_config
from mqproof.impl.broker.state.unwritten import Unwritten
from mqproof.impl.remoting.java_json import write
from mqproof.impl.remoting.message import UNIQUE_KEY, Message
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
from mqproof.impl.store.results import PERHAPS_STORED, PutStatus
from mqproof.spec.events import Kind

_log = logging.getLogger(__name__)

LEVELS_MAX: Final = 18
"""The number of queues of the schedule topic, whatever levels are configured."""

_READER: Final = "delayed messages"
_BATCH: Final = 32
"""The most messages stored in one step, before other coroutines run."""
_LOOK_AGAIN_S: Final = 1.0
"""The longest sleep while a message waits, because the clock may have been set."""
_IDLE_S: Final = 60.0
"""The longest wait for an arrival; it limits the delay if an arrival is not notified."""
_RETRY_S: Final = 1.0


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
        queue_id = level - 1
        offset = max(self._next.get(level, 0), self._store.min_offset(SCHEDULE_TOPIC, queue_id))
        units = self._store.units(SCHEDULE_TOPIC, queue_id, offset, _BATCH)
        if not units:
            await self._holds.hold(SCHEDULE_TOPIC, queue_id, offset, (), _IDLE_S)
            return
        for _ in units:
            # A damaged due time could hold back the whole level, or deliver too early.
            unit = self._store.unit(SCHEDULE_TOPIC, queue_id, offset)
            if unit is None:
                _log.error(
                    "the delayed message at offset %d of level %d is damaged and left out", offset, level
                )
                offset = self._advance(level, offset)
                continue
            if not is_due(unit, self._store.now_ms()):
                wait_ms = unit.tags_code - self._store.now_ms()
                await upkeep.until_due(upkeep.after(_LOOK_AGAIN_S), max(wait_ms, 1) / 1000)
                return
            if not await self._put(unit, address):
                await asyncio.sleep(_RETRY_S)
                return
            offset = self._advance(level, offset)
        await asyncio.sleep(0)

    def _advance(self, level: int, offset: int) -> int:
        """Record that the message at this offset of a level is done; return the next offset."""
        self._next[level] = offset + 1
        self._unwritten.is_any = True
        return offset + 1

    async def _put(self, unit: Unit, address: Address) -> bool:
        """Store the message in its own topic and queue; return False when it should be tried again."""
        message = self._message(unit)
        if message is None:
            return True
        result = await self._store.put(replace(message, store_host=address), wait=False)
        if result.status is PutStatus.MESSAGE_ILLEGAL:
            _log.error("the delayed message at %d is dropped: %s", unit.commit_offset, result.reason)
            return True
        if result.status in PERHAPS_STORED:
            self._emit_retry(message, result.status)
        return result.status is PutStatus.PUT_OK

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

    def _message(self, unit: Unit) -> Message | None:
        """Return the message to store; None where there is nothing to store."""
        stored = self._store.stored_at(unit.commit_offset)
        if stored is None:
            _log.error("the delayed message at %d does not exist any more", unit.commit_offset)
            return None
        try:
            message = due(stored.message)
        except ValueError as error:
            _log.error("the delayed message at %d is dropped: %s", unit.commit_offset, error)
            return None
        return None if message.topic in NOT_FOR_CLIENTS else message


def is_due(unit: Unit, now_ms: int) -> bool:
    """Return whether the time in the entry has come; a message is never delivered early."""
    return unit.tags_code <= now_ms
