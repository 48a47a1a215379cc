"""The operations of the control interface: a request to a status and a JSON value."""

import base64
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.embedded.control_request import BadControlRequestError, ControlRequest
from mqproof.impl.embedded.controlled_broker import ControlledBroker

S = TypeVar("S", bound=Struct)

ADVANCE_DAYS_MAX: Final = 7
MESSAGES_MAX: Final = 1000
BODIES_BYTES_MAX: Final = 8 << 20
"""The most bytes of bodies in one answer; one message is always returned."""


class _Advance(Struct, forbid_unknown_fields=True):
    hours: float = 0
    minutes: float = 0
    seconds: float = 0
    keep_clients: bool = True


class _Fault(Struct, forbid_unknown_fields=True):
    operation: str
    times: Annotated[int, Meta(ge=1, le=1000)] = 1
    code: str = "SYSTEM_BUSY"
    remark: Annotated[str, Meta(max_length=1000)] = "ordered by the test"
    executed: bool = False


class _Nothing(Struct, forbid_unknown_fields=True):
    pass


class _Query(Struct, forbid_unknown_fields=True):
    topic: Annotated[str, Meta(min_length=1, max_length=255)]
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=MESSAGES_MAX)] = 100


async def operate(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    """Carry out the request. Returns the HTTP status and the value to answer.

    Raises:
        BadControlRequestError: an unknown path or method, or a value that the operation does not accept.
    """
    methods = _OPERATIONS.get(request.path)
    if methods is None:
        raise BadControlRequestError("404 Not Found", f"paths: {' '.join(_OPERATIONS)}")
    operation = methods.get(request.method)
    if operation is None:
        raise BadControlRequestError("405 Method Not Allowed", f"{request.path}: {', '.join(methods)}")
    if request.query and request.path != "/messages":
        raise BadControlRequestError("400 Bad Request", f"{request.path} has no query")
    try:
        return await operation(broker, request)
    except ValueError as error:  # includes msgspec.ValidationError and DecodeError
        raise BadControlRequestError("400 Bad Request", str(error)) from None


async def _health(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    _body(request, _Nothing)
    answer = {
        "status": "failed" if broker.failure else "ok",
        "name_server": str(broker.name_server),
        "broker": str(broker.address),
        "now_ms": broker.now_ms(),
        "reset_count": broker.reset_count,
    }
    if broker.failure:
        return "503 Service Unavailable", {**answer, "error": broker.failure}
    return "200 OK", answer


async def _reset(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    _body(request, _Nothing)
    await broker.reset()
    return "200 OK", {"reset_count": broker.reset_count}


async def _advance(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    asked = _body(request, _Advance)
    seconds = asked.hours * 3600 + asked.minutes * 60 + asked.seconds
    if not 0 <= seconds <= ADVANCE_DAYS_MAX * 86400:
        raise ValueError(f"advance by {seconds} s: expected 0 s to {ADVANCE_DAYS_MAX} days")
    return "200 OK", {"now_ms": await broker.advance(seconds, keep_clients=asked.keep_clients)}


async def _order(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    asked = _body(request, _Fault)
    await broker.fail_next(asked.operation, asked.times, asked.code, asked.remark, executed=asked.executed)
    return await _faults(broker, ControlRequest("GET", request.path, {}, b""))


async def _faults(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    _body(request, _Nothing)
    return "200 OK", {"pending": await broker.faults()}


async def _forget(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    _body(request, _Nothing)
    await broker.forget_faults()
    return await _faults(broker, request)


async def _messages(broker: ControlledBroker, request: ControlRequest) -> tuple[str, dict[str, Any]]:
    _body(request, _Nothing)
    asked = msgspec.convert(request.query, _Query, strict=False)
    found = await broker.messages(asked.topic)
    shown: list[dict[str, Any]] = []
    size = 0
    for message in found[asked.offset : asked.offset + asked.limit]:
        size += len(message.body)
        if shown and size > BODIES_BYTES_MAX:
            break
        shown.append(_shown(message))
    return "200 OK", {"topic": asked.topic, "count": len(found), "messages": shown}


def _shown(message: ReceivedMessage) -> dict[str, Any]:
    stored = message.stored
    try:
        text = message.body.decode()
    except UnicodeDecodeError:
        text = None
    return {
        "message_id": message.message_id,
        "queue_id": message.queue.queue_id,
        "queue_offset": message.queue_offset,
        "body": text,
        "body_base64": base64.b64encode(message.body).decode(),
        "tag": message.tag,
        "keys": message.keys,
        "properties": dict(stored.message.properties),
        "born_ms": stored.message.born_timestamp_ms,
        "stored_ms": stored.store_timestamp_ms,
        "reconsume_times": message.reconsume_times,
    }


def _body(request: ControlRequest, kind: type[S]) -> S:
    return msgspec.json.decode(request.body or b"{}", type=kind)


Operation = Callable[[ControlledBroker, ControlRequest], Awaitable[tuple[str, dict[str, Any]]]]

_OPERATIONS: Final[dict[str, dict[str, Operation]]] = {
    "/health": {"GET": _health},
    "/reset": {"POST": _reset},
    "/advance": {"POST": _advance},
    "/faults": {"GET": _faults, "POST": _order, "DELETE": _forget},
    "/messages": {"GET": _messages},
}
