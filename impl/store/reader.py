"""Reads records by queue entry or index entry.

See docs/reference/protocol/pulling.md, "Get statuses"; docs/reference/protocol/storing.md, "Key index".
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from mqproof.impl.remoting.message import StoredMessage
from mqproof.impl.store.dispatch import index_keys
from mqproof.impl.store.files import record
from mqproof.impl.store.files.commit_log import CommitLog
from mqproof.impl.store.files.consume_queue import ConsumeQueue
from mqproof.impl.store.results import GetResult, GetStatus

_UNITS_LOOKED_AT: Final = 800
"""How many entries one read visits when few of them match; more if more messages are requested."""


def read_messages(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    max_count: int,
    max_bytes: int,
    tag_codes: Collection[int] | None,
    selects: Callable[[bytes], bool] | None = None,
) -> GetResult:
    """Read at most `max_count` records from `offset` on, of those that `selects` accepts.

    They have at most `max_bytes` together, but the first one is returned whatever its size.
    """
    begin, end = queue.first, queue.end
    refusal = _refusal(offset, begin, end)
    if refusal is not None:
        status, next_offset = refusal
        return GetResult(status, next_offset, begin, end)
    records: list[bytes] = []
    room, next_offset, gone = max_bytes, offset, False
    for unit in queue.scan(offset, max(_UNITS_LOOKED_AT, max_count)):
        if not tag_codes or unit.tags_code in tag_codes:
            if records and (len(records) >= max_count or unit.size > room):
                break
            # A damaged entry may contain any values: the reader skips it and goes on.
            data = log.read(unit.commit_offset, unit.size) if min(unit.commit_offset, unit.size) >= 0 else b""
            if data and len(data) == unit.size:
                if selects is not None and not selects(data):
                    next_offset += 1
                    continue
                records.append(data)
                room -= unit.size
            else:
                gone = True
        next_offset += 1
    if records:
        status = GetStatus.FOUND
    else:
        status = GetStatus.MESSAGE_WAS_REMOVING if gone else GetStatus.NO_MATCHED_MESSAGE
    return GetResult(status, next_offset, begin, end, tuple(records))


def find_records(
    log: CommitLog, offsets: Iterable[int], topic: str, key: str
) -> Iterator[tuple[StoredMessage, bytes]]:
    """Yield those suggested records that have the key; others may only have the same hash."""
    for offset in offsets:
        size, _ = record.peek(log.read(offset, 8))
        stored = log.record_at(offset, size) if offset >= log.begin else None
        if stored is not None and stored.message.topic == topic and key in index_keys(stored.message):
            yield stored, log.read(offset, size)


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
