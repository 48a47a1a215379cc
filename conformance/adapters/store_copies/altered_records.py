"""Alters one record in the log of a stopped store, and reads everything from the store that starts on it.

See docs/reference/protocol/storing.md, "Damaged files". Only the altered record may be missing, and then its
place is reported. No other bytes are delivered in its place, and no later message gets its offset.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from mqproof.conformance.adapters.store_copies.recovered_copies import RecoveredCopies, was_killed
from mqproof.conformance.answers.file_rules import deletions
from mqproof.conformance.answers.request_and_answer import Wrong
from mqproof.conformance.answers.store_on_disk import (
    LOG,
    expected_queues,
    read_log,
)
from mqproof.conformance.answers.stored_record import RecordError, StoredRecord, read_records
from mqproof.conformance.answers.watch import Watch
from mqproof.conformance.damage.checkers import is_named
from mqproof.conformance.faults.collected_warnings import collected
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.store.message_store import MessageStore

_DAMAGE_LOG: Final = "mqproof.impl.store.damage"
_QUEUE_ID_AT, _QUEUE_OFFSET_AT, _COMMIT_OFFSET_AT, _SYSTEM_FLAG_AT, _BODY_AT = 12, 20, 28, 36, 88

Alteration = Callable[[StoredRecord, random.Random], bytes]
"""Returns the bytes that replace a record; they have the same size."""


def _zeroed(record: StoredRecord, _chance: random.Random) -> bytes:
    return bytes(len(record.raw))


def _half_zeroed(record: StoredRecord, _chance: random.Random) -> bytes:
    half = len(record.raw) // 2
    return record.raw[:half].ljust(len(record.raw), b"\0")


def _garbage(record: StoredRecord, chance: random.Random) -> bytes:
    return chance.randbytes(len(record.raw))


def _any_bit(record: StoredRecord, chance: random.Random) -> bytes:
    return _flipped(record, chance.randrange(len(record.raw)), chance)


def _bit_of_front(record: StoredRecord, chance: random.Random) -> bytes:
    return _flipped(record, chance.randrange(_BODY_AT), chance)


def _bit_of_topic(record: StoredRecord, chance: random.Random) -> bytes:
    at = record.raw.index(record.topic.encode(), _BODY_AT + len(record.body))
    return _flipped(record, at + chance.randrange(len(record.topic)), chance)


def _zero_in_topic(record: StoredRecord, _chance: random.Random) -> bytes:
    at = record.raw.index(record.topic.encode(), _BODY_AT + len(record.body))
    return _with(record, at, b"\0")


def _other_offset(step: int) -> Alteration:
    """Name the offset of a neighbour."""

    def alter(record: StoredRecord, _chance: random.Random) -> bytes:
        offset = max(0, record.queue_offset + step)
        return _with(record, _QUEUE_OFFSET_AT, offset.to_bytes(8, "big"))

    return alter


def _other_queue(record: StoredRecord, _chance: random.Random) -> bytes:
    return _with(record, _QUEUE_ID_AT, (record.queue_id ^ 1).to_bytes(4, "big"))


def _other_place(record: StoredRecord, _chance: random.Random) -> bytes:
    return _with(record, _COMMIT_OFFSET_AT, (record.commit_offset + 1).to_bytes(8, "big"))


def _other_kind(record: StoredRecord, chance: random.Random) -> bytes:
    return _with(record, _SYSTEM_FLAG_AT, (record.system_flag ^ chance.choice((4, 8, 12))).to_bytes(4, "big"))


def _flipped(record: StoredRecord, at: int, chance: random.Random) -> bytes:
    return _with(record, at, bytes([record.raw[at] ^ (1 << chance.randrange(8))]))


def _with(record: StoredRecord, at: int, data: bytes) -> bytes:
    return record.raw[:at] + data + record.raw[at + len(data) :]


ALTERATIONS: Final[Mapping[str, Alteration]] = {
    "is zeroed": _zeroed,
    "is half zeroed": _half_zeroed,
    "is garbage": _garbage,
    "has an altered bit": _any_bit,
    "has an altered bit before its body": _bit_of_front,
    "has an altered bit in its topic": _bit_of_topic,
    "has a zero byte in its topic": _zero_in_topic,
    "names the offset before its own": _other_offset(-1),
    "names the offset after its own": _other_offset(1),
    "names another queue": _other_queue,
    "names another place in the log": _other_place,
    "is of another kind": _other_kind,
}


class AlteredRecords:
    """Starts stores on copies of one stopped store with an altered record each."""

    def __init__(
        self,
        stopped: SimulatedDisk,
        directory: str,
        copies: RecoveredCopies,
        watch: Watch,
        *,
        is_counted: bool = True,
    ) -> None:
        """`is_counted`: whether the checkpoint says that the whole log was durable.

        Otherwise a start may cut the log at the altered record, and report what it cuts.
        """
        self._is_counted = is_counted
        self._stopped = stopped
        self._directory = directory
        self._copies = copies
        self._watch = watch
        self._log = read_log(copies.files(stopped), copies.shape)

    async def examine(self, name: str, chance: random.Random) -> None:
        """Alter a drawn record, more often one of the last or the first."""
        records = self._alterable()
        if not records:
            return
        record = chance.choice((records[0], records[-1], *chance.sample(records, min(4, len(records)))))
        data = ALTERATIONS[name](record, chance)
        if data == record.raw:
            return
        disk = self._stopped.copy()
        self._write(disk, record, data)
        if chance.random() < 0.5 and not disk.exists(f"{self._directory}/abort"):
            was_killed(disk, self._directory)
        what = f"the record at {record.commit_offset} {name}"
        with collected(_DAMAGE_LOG) as lines:
            for start in ("a start", "a second start"):
                store = await self._copies.started(f"{start} when {what}", disk)
                if store is None:
                    return
                wrong = list(self._wrong(store, record, lines))
                await store.stop()
                disk.crash_process()
                self._watch.found(f"{start} when {what}", wrong)

    def _alterable(self) -> list[StoredRecord]:
        """Return the records that have an entry, in queues with several: a start relies on the others."""
        queues = expected_queues(self._log, self._copies.shape, deletions(self._copies.files(self._stopped)))
        places = {at for entries in queues.values() if len(entries) > 1 for at, _, _ in entries.values()}
        return [record for record in self._log.records if record.commit_offset in places]

    def _write(self, disk: SimulatedDisk, record: StoredRecord, data: bytes) -> None:
        size = self._copies.shape.log_bytes
        start = record.commit_offset // size * size
        disk.damage(f"{self._directory}/{LOG}{start:020d}", record.commit_offset - start, data)

    def _wrong(self, store: MessageStore, altered: StoredRecord, lines: list[str]) -> Iterator[Wrong]:
        by_place = {record.commit_offset: record for record in self._log.records}
        queues = expected_queues(self._log, self._copies.shape, store.deleted_topics)
        for queue, entries in queues.items():
            for offset, (at, _, _) in entries.items():
                found = store.get(*queue, offset, max_count=1)
                data = b"".join(found.records) if found.next_offset == offset + 1 else b""
                may_miss = at == altered.commit_offset or (
                    not self._is_counted and at > altered.commit_offset
                )
                problem = _problem(by_place[at], data, lines, may_miss=may_miss)
                if problem:
                    yield Wrong(chapters.DAMAGED_FILES, f"{problem} at offset {offset} of {queue}")
            if self._is_counted and store.next_queue_offset(*queue) < max(entries) + 1:
                text = f"the next offset of {queue} is {store.next_queue_offset(*queue)}, it had {entries}"
                yield Wrong(chapters.DAMAGED_FILES, text)


def _problem(expected: StoredRecord, found: bytes, lines: list[str], *, may_miss: bool) -> str:
    """Return what is wrong about the record that a queue delivers; empty if nothing is.

    `may_miss`: whether it may be missing, with a report, or have other values in fields without a checksum.
    """
    if found == expected.raw or (found and may_miss and _covered(found) == _covered(expected.raw)):
        return ""
    if found:
        return "other bytes are delivered"
    if not may_miss:
        return "a sound record is not delivered"
    place = expected.topic, expected.queue_offset, expected.commit_offset
    return "" if is_named("\n".join(lines), *place) else "a lost record is not reported"


def _covered(data: bytes) -> tuple[object, ...] | None:
    """Return the fields of a record that a checksum or a rule of the format covers."""
    try:
        (record,) = read_records(data)
    except (RecordError, ValueError):
        return None
    return record.queue_id, record.queue_offset, record.commit_offset, record.body, record.topic
