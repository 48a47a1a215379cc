"""Reading a queue: from its entries to whole records (docs/protocol.md, "Get statuses")."""

from collections.abc import Collection
from typing import Final

from impl.store.commit_log import CommitLog
from impl.store.consume_queue import ConsumeQueue
from impl.store.results import GetResult, GetStatus

_UNITS_LOOKED_AT: Final = 800
"""How many entries one read looks at when few of them match; more when more messages are asked for."""


def read_messages(
    log: CommitLog,
    queue: ConsumeQueue,
    offset: int,
    max_count: int,
    max_bytes: int,
    tag_codes: Collection[int] | None,
) -> GetResult:
    """At most `max_count` records, of at most `max_bytes` together but for the first, from `offset` on."""
    begin, end = queue.begin, queue.end
    refusal = _refusal(offset, begin, end)
    if refusal is not None:
        status, next_offset = refusal
        return GetResult(status, next_offset, begin, end)
    records: list[bytes] = []
    room, next_offset, gone = max_bytes, offset, False
    for unit in queue.units(offset, max(_UNITS_LOOKED_AT, max_count)):
        if not tag_codes or unit.tags_code in tag_codes:
            if records and (len(records) >= max_count or unit.size > room):
                break
            data = log.read(unit.commit_offset, unit.size)
            if len(data) == unit.size:
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


def _refusal(offset: int, begin: int, end: int) -> tuple[GetStatus, int] | None:
    """Why nothing can be read there, and where to go on; None when something can."""
    if end == 0:
        return GetStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < begin:
        return GetStatus.OFFSET_TOO_SMALL, begin
    if offset == end:
        return GetStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > end:
        return GetStatus.OFFSET_OVERFLOW_BADLY, end
    return None
