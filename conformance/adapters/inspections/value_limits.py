"""Each member of each header at the ends of its range and beyond, and lists in bodies at their limits.

See docs/reference/protocol/framing.md, "Operation headers".
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import HOST, Inspection, Site
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame, Header
from mqproof.conformance.wire.model import NOT_SUPPORTED, Field, Kind, Operation, Server
from mqproof.conformance.wire.operations import ALL, pop

_NAME, _LIST, _VALUE = 1024, 64 << 10, 512 << 10
_LENGTHS: Final[Mapping[str, int]] = {
    "properties": _LIST, "i": _LIST, "subscription": _LIST, "recallHandle": _LIST, "filterGroups": _LIST,
    "value": _VALUE, "whiteRemoteAddress": _LIST, "topicPerms": _LIST, "groupPerms": _LIST,
    "globalWhiteAddrs": _LIST,
}  # fmt: skip
"""The most characters of texts that are not names."""
_LETTERS: Final = dict(
    zip(
        "abcdefghijklm",
        ("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag",
         "bornTimestamp", "flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch"),
        strict=True,
    )
)  # fmt: skip
_DUMMIES: Final = {Kind.TEXT: "x", Kind.INT: "0", Kind.LONG: "0", Kind.BOOL: "false"}
_AT_ONCE: Final = 64
_ANSWER_S: Final = 0.5
_UNANSWERED: Final = frozenset({"END_TRANSACTION"})
"""An end that is neither a commit nor a rollback has no answer."""


async def value_limits(site: Site) -> None:
    site.rule = chapters.OPERATION_HEADERS
    network = site.cluster.internet.machine(HOST)
    lines = {
        Server.BROKER: await RawClient(site.broker).open(network),
        Server.NAME_SERVER: await RawClient(site.name_server).open(network),
    }
    cases = [each for operation in ALL for each in _of(operation) if operation.server in lines]
    for begin in range(0, len(cases), _AT_ONCE):
        some = cases[begin : begin + _AT_ONCE]
        answers = [
            lines[operation.server].put(
                operation.code, fields, operation_body(operation), header=Header.BINARY
            )
            for operation, fields, _, _ in some
        ]
        for (operation, fields, name, is_allowed), answer in zip(some, answers, strict=True):
            await asyncio.wait([answer], timeout=_ANSWER_S)
            if answer.done():
                _judge(site, operation, name, fields[name], is_allowed, answer.result())
            elif operation.name not in _UNANSWERED:
                site.report(f"{operation.name} with {name}={fields[name][:20]!r} is not answered")


def operation_body(operation: Operation) -> bytes:
    return b"{}" if operation.body else b""


def _judge(site: Site, operation: Operation, name: str, value: str, is_allowed: bool, found: Frame) -> None:
    shown = _LETTERS.get(name, name)
    is_named = found.code == 1 and f"`$.{shown}`".replace("$.", "$." if value else "") in (found.remark or "")
    if (is_named is is_allowed and found.code != NOT_SUPPORTED) or found.is_own_error:
        what = f"{name} of {operation.name} with {value[:20]!r} of {len(value)} characters"
        site.report(f"{what}: the answer is {found.code} {found.remark}, refused for it: {not is_allowed}")


def _of(operation: Operation) -> Iterator[tuple[Operation, dict[str, str], str, bool]]:
    """Yield requests that are valid except for one member, the member, and whether its value is allowed."""
    if operation in _ELSEWHERE:
        return
    needed = {each.name: _DUMMIES[each.kind] for each in operation.fields if each.required}
    for field in operation.fields:
        if field.name not in _UNUSED.get(operation.name, "").split():
            for value, is_allowed in _values(field):
                yield operation, {**needed, field.name: value}, field.name, is_allowed
            if field.required:
                may_be_absent = field.name in _OPTIONAL.get(operation.name, "").split()
                yield operation, {**needed, field.name: ""}, field.name, may_be_absent


def _values(field: Field) -> Iterator[tuple[str, bool]]:
    match field.kind:
        case Kind.TEXT:
            most = _LENGTHS.get(field.name, _NAME)
            yield from (("x" * most, True), ("x" * (most + 1), False), ("\u00e4" * min(most, _LIST), True))
        case Kind.BOOL:
            yield from (("true", True), ("false", True), ("x", False))
        case kind:
            end = 1 << (31 if kind is Kind.INT else 63)
            for number, is_allowed in ((end - 1, True), (end, False), (-end, True), (-end - 1, False)):
                yield str(number), is_allowed
            yield "1.5", False


_ELSEWHERE: Final = (*pop.OPERATIONS,)
_UNUSED: Final[Mapping[str, str]] = {
    "SEND_MESSAGE_V2": "n", "PULL_MESSAGE": "requestSource", "LITE_PULL_MESSAGE": "requestSource",
    "VIEW_MESSAGE_BY_ID": "topic", "GET_MAX_OFFSET": "committed", "GET_TOPIC_CONFIG": "lo",
    "CONSUME_MESSAGE_DIRECTLY": "topic topicSysFlag groupSysFlag", "GET_CONSUME_STATS": "topicList",
    "UPDATE_AND_CREATE_TOPIC": "attributes force", "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG": "aclFileFullPath",
    "BROKER_HEARTBEAT": "brokerId epoch maxOffset confirmOffset electionPriority",
}  # fmt: skip
"""The members that our servers do not read."""
_OPTIONAL: Final[Mapping[str, str]] = {
    "GET_CONSUMER_RUNNING_INFO": "clientId", "UPDATE_AND_CREATE_TOPIC": "topicFilterType order",
    "UPDATE_AND_CREATE_ACL_CONFIG": "secretKey", "CLONE_GROUP_OFFSET": "offline",
}  # fmt: skip
"""The members that may be absent at our servers, although released ones need them."""
VALUE_LIMITS: Final = Inspection("limits of values", value_limits)
