"""Scrubbing: reads records that no client reads, so that damage is found while a peer still has their bytes.

Each entry of each queue is compared with its record, as a read does. See docs/reference/protocol/storing.md,
"Damaged files".
"""

import logging
from contextlib import suppress
from typing import Final

from mqproof.impl.runtime.runtime import Offload
from mqproof.impl.store.config import StoreConfig
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.entry_repair import EntryRepair
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, ConsumeQueues, QueueKey, Unit
from mqproof.impl.store.recovery import record_place

_log = logging.getLogger(__name__)

STEP_MS: Final = 50
FIRST_PASS_MS: Final = 60_000
"""The time after the start at which the first pass begins: a start is busy enough."""
_RECORDS_MAX: Final = 100
"""How many records one step compares, so that it leaves the event loop after a millisecond or two."""


class Scrub:
    """The passes over one store. Each visits all queues, and reads at most a number of bytes a second."""

    def __init__(
        self,
        config: StoreConfig,
        queues: ConsumeQueues,
        log: CommitLog,
        repair: EntryRepair,
        damage: DamageReport,
        offload: Offload,
    ) -> None:
        self.records = 0
        """How many records were compared since the start."""
        self.passes = 0
        """How many passes were completed since the start."""
        self._config = config
        self._queues = queues
        self._log = log
        self._repair = repair
        self._damage = damage
        self._offload = offload
        self._left: list[QueueKey] = []
        self._offset: int
        """Where the pass continues in the last queue of `_left`."""
        self._bytes_free = 0

    async def step(self) -> int:
        """Compare some records; return the milliseconds until the next step."""
        if not self._left:
            self._left = sorted((queue.key for queue in self._queues), reverse=True)
            self._offset = 0
        share = max(1, self._config.scrub_bytes_per_s * STEP_MS // 1000)
        self._bytes_free = min(self._bytes_free + share, share)
        if self._bytes_free > 0 and self._left:
            await self._compare_some(self._queues.find(*self._left[-1]))
        if self._left:
            return STEP_MS
        self.passes += 1
        _log.info("scrub: pass %d is complete, %d records since the start", self.passes, self.records)
        return self._config.scrub_interval_ms

    async def _compare_some(self, queue: ConsumeQueue | None) -> None:
        """Compare the next records of a queue, as far as the bytes of this step allow."""
        units = self._next_units(queue) if queue is not None else []
        if queue is None or not units:
            self._left.pop()
            self._offset = 0
            return
        with suppress(OSError):  # the comparison below reports it
            await self._offload(lambda: self._read_ahead(units))
        for unit in units:
            self._compare(queue, self._offset, unit)
            self._offset += 1
        self.records += len(units)

    def _next_units(self, queue: ConsumeQueue) -> list[Unit]:
        self._offset = max(self._offset, queue.first)
        chosen: list[Unit] = []
        for unit in queue.units(self._offset, _RECORDS_MAX):
            if self._bytes_free <= 0:
                break
            # A damaged size must not stop the pass for long.
            self._bytes_free -= min(max(unit.size, 0), self._log.record_bytes_max)
            chosen.append(unit)
        return chosen

    def _read_ahead(self, units: list[Unit]) -> None:
        """Bring the records into the page cache, in a thread: the event loop does not wait for the disk."""
        for unit in units:
            self._log.read_record(unit.commit_offset, unit.size)

    def _compare(self, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> None:
        try:
            if queue.first <= queue_offset < queue.end:  # it may have expired meanwhile
                self._repair.unit(queue, queue_offset)
        except OSError as error:
            place = record_place(self._log, queue, queue_offset, unit)
            self._damage.add(Damage(DamageKind.RECORD, place, str(error), Outcome.SKIPPED))
