"""RECALL_MESSAGE: a producer withdraws a message that waits for its time.

See docs/reference/protocol/timers.md, "Recalls".
"""

from typing import Final

from mqproof.impl.broker.released_timers import released_progress
from mqproof.impl.broker.requests.checks import require_master, require_topic, require_writable_broker
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import RecallMessageRequest, RecallMessageResponse
from mqproof.impl.remoting.recall_handle import RecallHandle, parse_handle
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.results import STORED, PutStatus


async def recall_message(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Withdraw the message that the handle names; success means that it is never delivered."""
    header = headers.read(RecallMessageRequest, request.fields)
    require_master(services)
    require_writable_broker(services)
    if not services.config.recalls:
        raise RefusedError(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    require_topic(services, header.topic)
    handle = _handle(services, header)
    result = await services.timers.recall(handle, header.producer_group)
    if result.status is PutStatus.PUT_OK:
        return request.answer(ResponseCode.SUCCESS, headers.write(RecallMessageResponse(handle.key)))
    code = ResponseCode.SYSTEM_ERROR
    if result.status is PutStatus.SERVICE_NOT_AVAILABLE:
        code = ResponseCode.SERVICE_NOT_AVAILABLE
    what = (
        "the recall is stored, but not confirmed" if result.status in STORED else "the recall is not stored"
    )
    return request.answer(code, remark=f"{what}: {result.status.value} {result.reason}")


def _handle(services: Services, header: RecallMessageRequest) -> RecallHandle:
    try:
        handle = parse_handle(header.recall_handle)
    except ValueError as error:
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, str(error)) from None
    now_ms = services.store.now_ms()
    problem = None
    if handle.topic != header.topic:
        problem = "topic not match"
    elif handle.broker != services.config.name:
        problem = "broker service not available"
    elif not now_ms < handle.due_ms:
        problem = "timestamp invalid"
    if problem is not None:
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, f"recall failed, {problem}")
    return handle


async def run(services: Services) -> None:
    """Deliver messages at their time until cancelled: the work of a master."""
    disk, store = services.runtime.disk, services.store
    await services.timers.run(services.address, lambda: released_progress(disk, store))


PROCESSORS: Final[dict[int, Processor]] = {RequestCode.RECALL_MESSAGE: recall_message}
"""Maps a request code to its processor."""
