"""Requests for the offsets of queues and of consumer groups.

See docs/reference/protocol/offsets.md, "Offset requests".
"""

from mqproof.impl.broker.requests import administrative_events
from mqproof.impl.broker.requests.checks import require_group, require_readable_queue
from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    OffsetResponse,
    QueryOffsetRequest,
    QueueRequest,
    SearchOffsetRequest,
    StoreTimeResponse,
    UpdateOffsetRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError


def query_offset(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return a group's offset; 0 if it never committed one and the queue's first message is in memory."""
    header = headers.read(QueryOffsetRequest, request.fields)
    topic, queue_id = header.topic, header.queue_id
    offset = services.offsets.query(header.consumer_group, topic, queue_id)
    if offset is None and (
        header.set_zero_if_not_found is False
        or services.store.min_offset(topic, queue_id) > 0
        or is_far_behind(services, topic, queue_id, 0)
    ):
        remark = f"group {header.consumer_group} has no offset in queue {queue_id} of {topic}"
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, remark)
    return _offset(request, offset or 0)


def update_offset(services: Services, request: Command, channel: Channel) -> Reply:
    """Commit a group's offset, greater or smaller, unless the request allows it only to increase."""
    header = headers.read(UpdateOffsetRequest, request.fields)
    require_group(services, header.consumer_group, channel)
    require_readable_queue(services, header.topic, header.queue_id)
    if header.commit_offset < 0:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"offset {header.commit_offset}, 0 or more expected")
    known = services.offsets.query(header.consumer_group, header.topic, header.queue_id)
    if not (header.only_forward and known is not None and known >= header.commit_offset):
        administrative_events.commit(services, header, request, channel)
    return request.answer(ResponseCode.SUCCESS)


def max_offset(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return one more than the queue's last offset."""
    header = headers.read(QueueRequest, request.fields)
    return _offset(request, services.store.max_offset(header.topic, header.queue_id))


def min_offset(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the queue's first offset that can still be read."""
    header = headers.read(QueueRequest, request.fields)
    return _offset(request, services.store.min_offset(header.topic, header.queue_id))


def earliest_store_time(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return when the queue's first message was stored, in milliseconds; -1 for an empty queue."""
    header = headers.read(QueueRequest, request.fields)
    first = services.store.min_offset(header.topic, header.queue_id)
    stored_ms = services.store.store_time_ms(header.topic, header.queue_id, first)
    response = StoreTimeResponse(-1 if stored_ms is None else stored_ms)
    return request.answer(ResponseCode.SUCCESS, headers.write(response))


def search_offset(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the offset of the message stored nearest to a time.

    A client of 5.x may instead request the first message at or after the time, or the last one at or before
    it.
    """
    header = headers.read(SearchOffsetRequest, request.fields)
    where = (services, header.topic, header.queue_id, header.timestamp)
    if header.boundary_type is None:
        return _offset(request, offset_at_time(*where))
    if header.boundary_type.upper() == "UPPER":
        return _offset(request, _last_until(*where))
    return _offset(request, _first_since(*where))


def offset_at_time(services: Services, topic: str, queue_id: int, timestamp_ms: int) -> int:
    """Return the offset of the message stored nearest to a time; of two equally near, the earlier one.

    For an empty queue this is the queue's end.
    """
    first, end = services.store.min_offset(topic, queue_id), services.store.max_offset(topic, queue_id)
    after = _first_since(services, topic, queue_id, timestamp_ms)
    if first < after:
        after_ms = services.store.store_time_ms(topic, queue_id, after)
        before_ms = services.store.store_time_ms(topic, queue_id, after - 1)
        if after_ms is not None and before_ms is not None:
            return after - 1 if timestamp_ms - before_ms <= after_ms - timestamp_ms else after
    return max(first, end - 1) if after == end else after


def _first_since(services: Services, topic: str, queue_id: int, timestamp_ms: int) -> int:
    """Return the offset of the first message stored at or after that time, else the queue's end."""
    low, high = services.store.min_offset(topic, queue_id), services.store.max_offset(topic, queue_id)
    # Store times never decrease within a queue.
    while low < high:
        middle = (low + high) // 2
        stored_ms = services.store.store_time_ms(topic, queue_id, middle)
        if stored_ms is None or stored_ms < timestamp_ms:
            low = middle + 1
        else:
            high = middle
    return low


def _last_until(services: Services, topic: str, queue_id: int, timestamp_ms: int) -> int:
    """Return the offset of the last message stored at that time or before; 0 if there is none."""
    behind = _first_since(services, topic, queue_id, timestamp_ms + 1)
    return behind - 1 if behind > services.store.min_offset(topic, queue_id) else 0


def is_far_behind(services: Services, topic: str, queue_id: int, offset: int) -> bool:
    """Return whether a message is too far from the end of the log to be in memory."""
    store = services.store
    near = services.runtime.memory_bytes * services.config.memory_percent // 100
    if store.log_end - store.log_begin <= near:
        return False
    at = store.commit_offset_at(topic, queue_id, offset)
    return at is not None and store.log_end - at > near


def _offset(request: Command, offset: int) -> Command:
    return request.answer(ResponseCode.SUCCESS, headers.write(OffsetResponse(offset)))
