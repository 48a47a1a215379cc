"""Repair of damaged queue entries: the log has everything that an entry contains.

An entry is compared with its record when it is read. If they differ, the store searches the log for the right
record, between the nearest sound entries of the queue. If it is there, the entry was damaged, and is written
again. Otherwise the record is damaged, and is never delivered. See docs/reference/protocol/storing.md,
"Damaged files".
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.delay import SCHEDULE_TOPIC, unit_code
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, QueueGapError, QueueKey, Unit
from mqproof.impl.store.recovery import has_offset, is_record_of, points_at_its_record, record_place
from mqproof.impl.store.verified_entries import VerifiedEntries

_NEIGHBOURS_MAX: Final = 1000
"""How many entries on each side are examined for a sound one, before the whole log is searched."""
_LOST_MAX: Final = 10_000
"""How many lost records are remembered, so that no read searches for them again."""


class LostRecord(NamedTuple):
    """A damaged record, as the entry of its queue describes it."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_offset: int
    size: int


class EntryRepair:
    """The checks and repairs of one store."""

    def __init__(
        self,
        log: CommitLog,
        delay_levels_ms: Sequence[int],
        damage: DamageReport,
        is_deleted: Callable[[str, int], bool],
        is_writable: Callable[[], bool],
        fail: Callable[[OSError | QueueGapError], None],
    ) -> None:
        self._log = log
        self._delay_levels_ms = delay_levels_ms
        self._damage = damage
        self._is_deleted = is_deleted
        self._is_writable = is_writable
        self._fail = fail
        self._lost: dict[tuple[QueueKey, int], Unit] = {}
        self.verified = VerifiedEntries()

    def is_sound(self, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> bool:
        """Return whether the entry and its record agree in everything."""
        return not self._problem(queue, queue_offset, unit, self._read(unit))

    def record(self, queue: ConsumeQueue, queue_offset: int, unit: Unit) -> tuple[Unit, bytes]:
        """Return the right entry and its record; the bytes are empty if the record is damaged or gone.

        Call this for an entry that is not sound.
        """
        if self._lost.get((queue.key, queue_offset)) == unit:
            data = self._read(unit)  # a peer may have repaired it
            if problem := self._problem(queue, queue_offset, unit, data):
                self._report_lost(queue, queue_offset, unit, problem)
                return unit, b""
            return unit, data
        stored = self._stored(unit)
        if stored is not None and is_record_of(stored, queue, queue_offset):
            found = {queue_offset: self._unit(stored)}
        else:
            found = self._search(queue, queue_offset)
        self._correct(queue, found)
        if queue_offset in found:
            return found[queue_offset], self._read(found[queue_offset])
        self._forget_oldest()
        self._lost[queue.key, queue_offset] = unit
        self._report_lost(
            queue, queue_offset, unit, self._problem(queue, queue_offset, unit, self._read(unit))
        )
        return unit, b""

    def lost(self) -> tuple[LostRecord, ...]:
        """Return the records that reads found damaged, the oldest finding first."""
        return tuple(
            LostRecord(*key, offset, unit.commit_offset, unit.size)
            for (key, offset), unit in self._lost.items()
        )

    def restore(self, queue: ConsumeQueue | None, lost: LostRecord, data: bytes) -> bool:
        """Write a peer's bytes in place of a lost record, if they are the record that the entry describes.

        Returns whether the record is right now. Raises OSError; it is not durable yet.
        """
        key = (lost.topic, lost.queue_id), lost.queue_offset
        unit = self._lost.get(key)
        if (
            queue is None
            or unit is None
            or (unit.commit_offset, unit.size) != (lost.commit_offset, lost.size)
        ):
            return False
        if queue.units(lost.queue_offset, 1) != [unit] or len(data) != unit.size:
            return False
        problem = self._problem(queue, lost.queue_offset, unit, self._read(unit))
        if problem and (not self._is_writable() or self._problem(queue, lost.queue_offset, unit, data)):
            return False
        if problem:
            self._log.replace_record(unit.commit_offset, data)
            place = record_place(self._log, queue, lost.queue_offset, unit)
            self._damage.add(Damage(DamageKind.RECORD, place, problem, Outcome.REPAIRED))
        del self._lost[key]
        return True

    def has(self, queue: ConsumeQueue, queue_offset: int, stored: StoredMessage) -> bool:
        """Return whether this record has the queue offset; report it as lost if another record has it."""
        units = queue.units(queue_offset, 1)
        if units and units[0].commit_offset == stored.commit_offset:
            return True
        unit = self.unit(queue, queue_offset)
        if unit is None or unit.commit_offset == stored.commit_offset:
            return unit is not None
        lost = Unit(stored.commit_offset, stored.size, 0)
        self._report_lost(queue, queue_offset, lost, "another record has its queue offset")
        return False

    def unit(self, queue: ConsumeQueue, queue_offset: int) -> Unit | None:
        """Return the entry, repaired if it was damaged; None if there is none or its record is damaged."""
        if queue.key[0] == SCHEDULE_TOPIC:
            # The code of such an entry is the time when the message is due.
            entry = self.entry(queue, queue_offset)
            return entry and entry[0]
        unit = self._there(queue, queue_offset)
        if unit is None or self.is_sound(queue, queue_offset, unit):
            return unit
        found, data = self.record(queue, queue_offset, unit)
        return found if data else None

    def entry(self, queue: ConsumeQueue, queue_offset: int) -> tuple[Unit, StoredMessage] | None:
        """Return the entry, like `unit`, with the message of its record."""
        unit = self._there(queue, queue_offset)
        if unit is None:
            return None
        stored = self._stored(unit)
        if stored is not None and is_record_of(stored, queue, queue_offset) and self._unit(stored) == unit:
            return unit, stored
        unit, data = self.record(queue, queue_offset, unit)
        stored = self._log.decode(data, unit.commit_offset) if data else None
        return None if stored is None else (unit, stored)

    # -- internals

    def _there(self, queue: ConsumeQueue, queue_offset: int) -> Unit | None:
        """Return the entry as it is in the file; None if there is none."""
        units = queue.units(queue_offset, 1) if queue.first <= queue_offset < queue.end else []
        return units[0] if units else None

    def _problem(self, queue: ConsumeQueue, queue_offset: int, unit: Unit, data: bytes) -> str:
        topic, queue_id = queue.key
        code = None if topic == SCHEDULE_TOPIC else unit.tags_code
        fields = record.topic_fields(topic)
        return record.entry_problem(data, unit.commit_offset, queue_id, queue_offset, fields, code)

    def _read(self, unit: Unit) -> bytes:
        return self._log.read_record(unit.commit_offset, unit.size)

    def _stored(self, unit: Unit) -> StoredMessage | None:
        data = self._read(unit)
        return self._log.decode(data, unit.commit_offset) if data else None

    def _unit(self, stored: StoredMessage) -> Unit:
        code = unit_code(stored.message, stored.store_timestamp_ms, self._delay_levels_ms)
        return Unit(stored.commit_offset, stored.size, code)

    def _search(self, queue: ConsumeQueue, queue_offset: int) -> dict[int, Unit]:
        """Return the entries of the queue whose records are between the nearest sound entries.

        Sound entries are never replaced: the log may also have records of a deleted topic of that name.
        """
        before = next(self._sound(queue, range(queue_offset - 1, queue.first - 1, -1)), None)
        after = next(self._sound(queue, range(queue_offset + 1, queue.end)), None)
        begin = before[1].commit_offset + before[1].size if before else self._log.begin
        end = after[1].commit_offset if after else self._log.end
        offsets = range(before[0] + 1 if before else queue.first, after[0] if after else queue.end)
        found: dict[int, Unit] = {}
        for position, stored in self._log.scan(begin):
            if (
                stored is not None
                and has_offset(stored, queue, stored.queue_offset)
                and stored.queue_offset in offsets
                and stored.commit_offset < end
                and not self._is_deleted(queue.key[0], stored.commit_offset)
            ):
                found.setdefault(stored.queue_offset, self._unit(stored))
            if position >= end:
                break
        return found

    def _sound(self, queue: ConsumeQueue, offsets: range) -> Iterator[tuple[int, Unit]]:
        for offset in offsets[:_NEIGHBOURS_MAX]:
            if points_at_its_record(queue, offset, self._log):
                yield offset, queue.units(offset, 1)[0]

    def _correct(self, queue: ConsumeQueue, found: dict[int, Unit]) -> None:
        for offset, unit in found.items():
            was = queue.units(offset, 1)
            if was == [unit]:
                continue
            place = f"{queue.segments.directory}, offset {offset}"
            problem = f"it is {_words(was[0])}, its record is {_words(unit)}" if was else "it is missing"
            if self._is_writable():
                try:
                    queue.write(offset, [unit])
                except (OSError, QueueGapError) as error:
                    self._fail(error)
            self._damage.add(Damage(DamageKind.QUEUE_ENTRY, place, problem, Outcome.REPAIRED))

    def _report_lost(self, queue: ConsumeQueue, queue_offset: int, unit: Unit, problem: str) -> None:
        if 0 <= unit.commit_offset < self._log.begin:
            return  # it has expired since the queue was examined
        place = record_place(self._log, queue, queue_offset, unit)
        self._damage.add(Damage(DamageKind.RECORD, place, problem, Outcome.SKIPPED))

    def _forget_oldest(self) -> None:
        if len(self._lost) >= _LOST_MAX:
            del self._lost[next(iter(self._lost))]


def _words(unit: Unit) -> str:
    return f"{unit.size} bytes at {unit.commit_offset} with code {unit.tags_code}"
