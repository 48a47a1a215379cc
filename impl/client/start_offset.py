"""Where a consumer begins to read a queue. See docs/protocol.md, "Where a group begins"."""

from enum import StrEnum

from mqproof.impl.client.group_requests import GroupRequests
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.offset_store import Offsets
from mqproof.impl.remoting.message import RETRY_PREFIX


class ConsumeFrom(StrEnum):
    """Where a group begins in a queue of which it has no offset. (A queue that still has its very first
    message begins there, whatever is said here: brokers answer 0.)"""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


async def start_offset(
    queue: MessageQueue, calls: GroupRequests, offsets: Offsets, consume_from: ConsumeFrom, since_ms: int
) -> int:
    """The offset to go on from, else where the group is to begin; `since_ms` is for TIMESTAMP.

    Raises:
        ClientError: it is not known. To begin anywhere else would skip messages or repeat them.
    """
    known = await offsets.load(queue)
    if known is not None:
        return known
    offset = await _first_offset(queue, calls, consume_from, since_ms)
    # Stored even if nothing comes: begun at the end once, a group has to see whatever comes after that.
    offsets.set(queue, offset)
    return offset


async def _first_offset(
    queue: MessageQueue, calls: GroupRequests, consume_from: ConsumeFrom, since_ms: int
) -> int:
    if queue.topic.startswith(RETRY_PREFIX):
        return 0  # it holds what this group failed to consume, and nothing of that may be passed over
    if consume_from is ConsumeFrom.LAST_OFFSET:
        return await calls.max_offset(queue)
    if consume_from is ConsumeFrom.FIRST_OFFSET:
        return await calls.min_offset(queue)
    return await calls.search_offset(queue, since_ms)
