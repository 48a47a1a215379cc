"""Where a consumer starts to read a queue.

See docs/reference/protocol/offsets.md, "Initial offset of a group".
"""

from enum import StrEnum
from typing import Final

from mqproof.impl.client.arguments import require_kind, require_time_ms
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.offset_store import Offsets
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.remoting.message import RETRY_PREFIX

_DEFAULT_AGE_MS: Final = 30 * 60_000


class ConsumeFrom(StrEnum):
    """Where a group starts in a queue in which it has no offset.

    A queue that still has its very first message is read from there, whatever the setting: brokers return 0
    for it.
    """

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def require_start(consume_from: object, consume_from_ms: object) -> None:
    """Refuse a start that is no ConsumeFrom, and a time that it does not use."""
    require_kind("consume_from", consume_from, ConsumeFrom)
    if consume_from_ms is None:
        return
    require_time_ms("consume_from_ms", consume_from_ms)
    if consume_from is not ConsumeFrom.TIMESTAMP:
        raise ValueError(f"consume_from_ms needs consume_from=ConsumeFrom.TIMESTAMP, not {consume_from!r}")


def start_time_ms(consume_from_ms: int | None, now: int) -> int:
    """Return the time at which TIMESTAMP starts: without a configured one, half an hour ago."""
    return now - _DEFAULT_AGE_MS if consume_from_ms is None else consume_from_ms


async def start_offset(
    queue: MessageQueue, calls: GroupRequests, offsets: Offsets, consume_from: ConsumeFrom, since_ms: int
) -> int:
    """Return the stored offset, or the offset at which the group must start. `since_ms` is for TIMESTAMP.

    Raises:
        ClientError: the offset is not known. Starting anywhere else would skip or repeat messages.
    """
    known = await offsets.load(queue)
    if known is not None:
        return known
    offset = await _first_offset(queue, calls, consume_from, since_ms)
    # Store it at once, before any message arrives: a group that once started at the end must get every later
    # message, also if this process ends before it stores its progress.
    await offsets.begin(queue, offset)
    return offset


async def _first_offset(
    queue: MessageQueue, calls: GroupRequests, consume_from: ConsumeFrom, since_ms: int
) -> int:
    if queue.topic.startswith(RETRY_PREFIX):
        return 0  # it holds messages that this group failed to consume, and none may be skipped
    if consume_from is ConsumeFrom.LAST_OFFSET:
        return await calls.max_offset(queue)
    if consume_from is ConsumeFrom.FIRST_OFFSET:
        return await calls.min_offset(queue)
    return await calls.search_offset(queue, since_ms)
