"""Reads records by queue entry or index entry.

See docs/reference/protocol/pulling.md, "Get statuses"; docs/reference/protocol/storing.md, "Key index".
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.damage import Damage, DamageKind, DamageReport, Outcome
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.entry_repair import EntryRepair
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue, Unit
from mqproof.impl.store.results import GetResult, GetStatus
from mqproof.impl.store.verified_entries import BLOCK_ENTRIES

_OTHERS_MAX: Final = 1000
"""The most records without the wanted key that a search by key reads."""
_OTHERS_BYTES_MAX: Final = 32 << 20
"""The most bytes of such records."""
_UNITS_LOOKED_AT: Final = 800
"""How many entries one read visits when few of them match; more if more messages are requested."""


def read_messages(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    max_count: int,
    max_bytes: int,
    tag_codes: Collection[int] | None,
    repair: EntryRepair,
    selects: Callable[[bytes], bool] | None = None,
) -> GetResult:
    """Read at most `max_count` records from `offset` on, of those that `selects` accepts.

    They have at most `max_bytes` together, but the first one is returned whatever its size. Each entry is
    compared with its record, whether its tag is wanted or not. A damaged entry is repaired. A damaged record
    is reported and left out.
    """
    begin, end = queue.first, queue.end
    refusal = _refusal(offset, begin, end)
    if refusal is not None:
        status, next_offset = refusal
        return GetResult(status, next_offset, begin, end)
    count = max(_UNITS_LOOKED_AT, max_count)
    records, next_offset, gone = (
        _read_filtered(log, queue, offset, count, max_count, max_bytes, tag_codes, repair, selects)
        if tag_codes
        else _read_all(log, queue, offset, count, max_count, max_bytes, repair, selects)
    )
    if records:
        status = GetStatus.FOUND
    else:
        status = GetStatus.MESSAGE_WAS_REMOVING if gone else GetStatus.NO_MATCHED_MESSAGE
    return GetResult(status, next_offset, begin, end, tuple(records))


def _read_all(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    count: int,
    max_count: int,
    max_bytes: int,
    repair: EntryRepair,
    selects: Callable[[bytes], bool] | None,
) -> tuple[list[bytes], int, bool]:
    """Return the records of all tags, where to continue, and whether a record is damaged or gone."""
    topic, queue_id = queue.key
    fields = record.topic_fields(topic)
    records: list[bytes] = []
    room, gone = max_bytes, False
    for at, size, code in queue.fields(offset, count):
        if records and (len(records) >= max_count or size > room):
            break
        data = log.read_record(at, size)
        if record.entry_problem(data, at, queue_id, offset, fields, None):
            _, data = repair.record(queue, offset, Unit(at, size, code))
        if not data:
            gone = True
        elif selects is None or selects(data):
            records.append(data)
            room -= len(data)
        offset += 1
    return records, offset, gone


def _read_filtered(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    count: int,
    max_count: int,
    max_bytes: int,
    tag_codes: Collection[int],
    repair: EntryRepair,
    selects: Callable[[bytes], bool] | None,
) -> tuple[list[bytes], int, bool]:
    """Return the records with one of the tags, as `_read_all`.

    The other entries are compared with their records too, unless that was done before: a damaged tag code
    would hide a message.
    """
    topic, queue_id = queue.key
    fields = record.topic_fields(topic)
    records: list[bytes] = []
    room, gone, sound_from = max_bytes, False, offset
    block, is_verified = -1, False
    for at, size, code in queue.fields(offset, count):
        if offset // BLOCK_ENTRIES != block:
            block = offset // BLOCK_ENTRIES
            is_verified = repair.verified.has(queue, block)
        wanted = code in tag_codes
        if wanted and records and (len(records) >= max_count or size > room):
            break
        if wanted or not is_verified:
            data = log.read_record(at, size)
            checked_code = None if topic == SCHEDULE_TOPIC else code
            if record.entry_problem(data, at, queue_id, offset, fields, checked_code):
                unit, data = repair.record(queue, offset, Unit(at, size, code))
                wanted = unit.tags_code in tag_codes
                sound_from = offset + 1  # a store that cannot be written keeps the damaged entry
            if not data:
                gone = True
            elif wanted and (selects is None or selects(data)):
                records.append(data)
                room -= len(data)
        offset += 1
    repair.verified.add(queue, sound_from, offset)
    return records, offset, gone


def find_records(
    log: CommitLog, offsets: Iterable[int], is_wanted: Callable[[StoredMessage], bool], damage: DamageReport
) -> Iterator[bytes]:
    """Yield the wanted ones of suggested records; others may only have a key with the same hash.

    It ends after too many others: a sender can choose keys with the same hash. A suggestion without a whole
    record is reported: the record or the index is damaged.
    """
    others = other_bytes = 0
    for offset in offsets:
        if others == _OTHERS_MAX or other_bytes >= _OTHERS_BYTES_MAX:
            return
        if not log.begin <= offset < log.end:
            continue
        size, _ = record.peek(log.read(offset, 8))
        stored = log.decode(log.read_record(offset, size), offset)
        if stored is None:
            place = f"{log.segments.path_of(offset)}, commit offset {offset}"
            problem = "the key index suggests it, and no whole record is there"
            damage.add(Damage(DamageKind.INDEX_ENTRY, place, problem, Outcome.SKIPPED))
        elif is_wanted(stored):
            yield log.read(offset, size)
        else:
            others += 1
            other_bytes += size


def _refusal(offset: int, begin: int, end: int) -> tuple[GetStatus, int] | None:
    """Return why nothing can be read at this offset, and where to continue; None if a read is possible."""
    if end == 0:
        return GetStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < begin:
        return GetStatus.OFFSET_TOO_SMALL, begin
    if offset == end:
        return GetStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > end:
        return GetStatus.OFFSET_OVERFLOW_BADLY, end
    return None
