"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID and GET_ALL_DELAY_OFFSET: messages by key and by id, and delay offsets.

See docs/reference/protocol/pulling.md, "Message queries".
"""

from typing import Final

from mqproof.impl.broker.services import Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    UNIQUE_KEY_QUERY,
    QueryMessageRequest,
    QueryMessageResponse,
    ViewMessageRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError

_COUNT_MAX: Final = 64
_UNIQUE_KEY_COUNT: Final = 32
_BYTES_MAX: Final = 8 << 20
"""The most bytes in one answer; a single message is returned whatever its size."""


def query_message(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the newest messages with a key, in the order in which they were stored."""
    header = headers.read(QueryMessageRequest, request.fields)
    by_unique_key = request.fields.get(UNIQUE_KEY_QUERY) == "true"
    count = _UNIQUE_KEY_COUNT if by_unique_key else min(header.max_num, _COUNT_MAX)
    begin_ms, end_ms = header.begin_timestamp, header.end_timestamp
    found = services.store.find(header.topic, header.key, count, begin_ms, end_ms, _BYTES_MAX)
    response = headers.write(QueryMessageResponse(*services.store.index_end))
    if not found:
        remark = f"no message of topic {header.topic} with key {header.key}"
        return request.answer(ResponseCode.QUERY_NOT_FOUND, response, remark=remark)
    return request.answer(ResponseCode.SUCCESS, response, b"".join(found))


def view_message(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the message that begins at an offset of the commit log."""
    header = headers.read(ViewMessageRequest, request.fields)
    found = services.store.record_at(header.offset)
    if found is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"no message begins at {header.offset}")
    return request.answer(ResponseCode.SUCCESS, body=found)


def delay_offsets(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return how far each delay level is delivered."""
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(services.delays.offsets()))
