"""Mutants that the inspections detect, at least one for each inspection."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from mqproof.conformance.mutants import (
    broker_cases,
    broker_inspections,
    client_inspections,
    header_inspections,
    inspected_bounds,
    inspected_logs,
    inspected_stores,
    member_inspections,
    state_inspections,
)
from mqproof.conformance.mutants.mutant import by_name, unexplained
from mqproof.impl.access import policies
from mqproof.impl.access.permissions import ANY, DENY
from mqproof.impl.broker.processors import inspection, replies, retries, send
from mqproof.impl.broker.state.consumer_filters import ConsumerFilterTable
from mqproof.impl.namesrv.kv_config import KvConfig
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import DataVersion, StatsWindow
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.headers import WipeWriteResponse
from mqproof.impl.remoting.message import PUSH_REPLY_TIME, encode_properties
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import properties

_PROCESSORS: Final = "mqproof.impl.broker.processors"

_become, _entry, _unpacked = KvConfig._become, policies._entry, send._unpacked
_registered, _shown = ConsumerFilterTable._registered, inspection._shown
_again, _answer_fields = retries._again, replies._answer_fields
_with_values = properties.with_values
_quick = java_json._quick


def _default_of_every_topic(account: Any, need: Any) -> bool:
    if account.is_admin and not any(account.permissions.values()):
        return True
    granted = account.permissions[need.kind].get(need.name, account.defaults[need.kind])
    return not granted & DENY and bool(granted & (need.permission | ANY))


def _first_only(text: str | None) -> list[str] | None:
    return None if text is None else [part for part in text.split(",") if part][:1]


def _not_counted(_fields: dict[str, str]) -> None:
    pass


def _never_denied(*arguments: Any) -> Any:
    return msgspec.structs.replace(_entry(*arguments), decision="Allow")


def _no_permission(code: object, remark: str) -> Exception:  # noqa: ARG001
    return RefusedError(ResponseCode.NO_PERMISSION, remark)


def _same_version(_counter: int, now_ms: int) -> DataVersion:
    return DataVersion(1, now_ms)


def _other_lines_dropped(_text: str, values: Mapping[str, str]) -> str:
    return _with_values("", values)


def _one_topic(_count: int) -> WipeWriteResponse:
    return WipeWriteResponse(1)


async def _visible_before_written(kv: KvConfig, spaces: dict[str, dict[str, str]]) -> None:
    before = KvConfig(kv._path, kv._runtime)
    before._spaces, kv._spaces = kv._spaces, spaces
    await _become(before, spaces)


def _average_is_the_sum(counted: Any) -> StatsWindow:
    return msgspec.structs.replace(_shown(counted), avgpt=float(counted.sum))


def _any_name(_name: str) -> None:
    return None


def _flag_of_the_header(services: Any, header: Any, batch: Any) -> list[Any]:
    parts = _unpacked(services, header, batch)
    return [msgspec.structs.replace(each, flag=batch.flag) for each in parts]


def _version_kept(table: Any, group: str, subscription: Any, known: Any, now_ms: int) -> Any:
    if known is not None and subscription.sub_string == known.expression:
        return msgspec.structs.replace(known, dead_time=0)
    return _registered(table, group, subscription, known, now_ms)


def _never_unlocked(_table: object, _group: str, _client_id: str, _queues: Iterable[object]) -> None:
    """Do nothing."""


def _unchanged(values: Mapping[str, str]) -> str:
    return encode_properties({name: each for name, each in values.items() if name != PUSH_REPLY_TIME})


def _nothing_notified(_services: object, _header: object, _body: bytes) -> None:
    """Do nothing."""


def _no_check(*_: object) -> None:
    """Refuse nothing."""


def _is_near(*_: object) -> bool:
    return False


async def _stays(_: object) -> None:
    """Do nothing."""


def _none_newer(_table: object, _masters: object) -> list[object]:
    return []


def _without_flag(*arguments: Any) -> Any:
    return msgspec.structs.replace(_again(*arguments), flag=0)


def _with_any_id(*arguments: Any) -> dict[str, str]:
    return _answer_fields(*arguments) | {"msgId": "1"}


def _no_age(*_: object) -> int:
    return 0


def _any_part(channel: Any, _before_s: float) -> bool:
    return bool(channel._buffer)


def _with_slashes(value: Any) -> bytes | None:
    quick = _quick(value)
    return quick and quick.replace(b"\\/", b"/")


def _as_it_is(request: Any) -> Any:
    return request


INSPECTIONS: Final[Mapping[str, str]] = {
    "default-of-every-topic": "permissions",
    "first-permission-only": "accounts",
    "never-denied": "users",
    "accounts-refused-as-forbidden": "no accounts",
    "settings-of-one-version": "settings",
    "other-settings-dropped": "name server settings",
    "one-topic-wiped": "registrations",
    "pair-visible-before-written": "key-value pairs",
    "average-is-the-sum": "statistics",
    "topic-name-not-checked": "topics and groups",
    "flag-of-the-header": "messages",
    "filter-version-kept": "filters",
    "never-unlocked": "held pulls",
    "reply-without-its-time": "replies",
    "members-not-notified-of-reset": "requests to consumers",
    "lag-without-age": "metrics",
    "sends-not-limited": "flow control",
    "half-messages-not-checked": "full tables",
    "never-far-behind": "far behind",
    "registered-after-the-stop": "stops",
    "commits-kept-at-the-slave": "slave",
    "copy-without-flag": "returned messages",
    "lost-reply-with-an-id": "full disk",
    "fields-not-counted": "frames",
    "part-of-a-frame-not-awaited": "channels",
    "later-claim-ignored": "name server limits",
    "slashes-not-escaped": "JSON and handles",
    "request-body-of-any-size": "request bodies",
    **broker_cases.INSPECTIONS,
    **broker_inspections.INSPECTIONS,
    **client_inspections.INSPECTIONS,
    **header_inspections.INSPECTIONS,
    **inspected_stores.INSPECTIONS,
    **inspected_logs.INSPECTIONS,
    **member_inspections.INSPECTIONS,
    **inspected_bounds.INSPECTIONS,
    **state_inspections.INSPECTIONS,
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "default-of-every-topic", "an account's default permission applies to the broker's own topics too",
        "mqproof.impl.access.acl:Account.allows", _default_of_every_topic,
    ),
    unexplained(
        "first-permission-only", "of several permissions in a request, only the first one counts",
        f"{_PROCESSORS}.acl_admin:_parts", _first_only,
    ),
    unexplained(
        "never-denied", "a denied permission is shown as allowed", "mqproof.impl.access.policies:_entry",
        _never_denied,
    ),
    unexplained(
        "accounts-refused-as-forbidden", "a broker without accounts answers NO_PERMISSION",
        f"{_PROCESSORS}.acl_admin:RefusedError", _no_permission,
    ),
    unexplained(
        "settings-of-one-version", "the version of the settings does not change with them",
        f"{_PROCESSORS}.broker_admin:DataVersion", _same_version,
    ),
    unexplained(
        "other-settings-dropped", "a change of settings drops the other lines of the file",
        "mqproof.impl.runtime.config_file:with_values", _other_lines_dropped,
    ),
    unexplained(
        "one-topic-wiped", "the number of topics without write permission is 1",
        "mqproof.impl.namesrv.administration:WipeWriteResponse", _one_topic,
    ),
    unexplained(
        "pair-visible-before-written", "a key-value pair is visible although its file was not written",
        "mqproof.impl.namesrv.kv_config:KvConfig._become", _visible_before_written,
    ),
    unexplained(
        "average-is-the-sum", "the average of a counter is its sum", f"{_PROCESSORS}.inspection:_shown",
        _average_is_the_sum,
    ),
    unexplained(
        "topic-name-not-checked", "administrators may create topics with any name",
        f"{_PROCESSORS}.topic_admin:name_problem", _any_name,
    ),
    unexplained(
        "flag-of-the-header", "the messages of a batch have the flag of its header",
        f"{_PROCESSORS}.send:_unpacked", _flag_of_the_header,
    ),
    unexplained(
        "filter-version-kept", "a later heartbeat with the same expression does not renew its version",
        "mqproof.impl.broker.state.consumer_filters:ConsumerFilterTable._registered", _version_kept,
    ),
    unexplained(
        "never-unlocked", "a queue stays locked after it is unlocked",
        "mqproof.impl.broker.state.queue_locks:QueueLockTable.unlock", _never_unlocked,
    ),
    unexplained(
        "reply-without-its-time", "a pushed reply does not say when it was pushed",
        f"{_PROCESSORS}.replies:encode_properties", _unchanged,
    ),
    unexplained(
        "members-not-notified-of-reset",
        "the members of a group are not notified of a reset of their offsets",
        f"{_PROCESSORS}.offset_admin:_notify_members", _nothing_notified,
    ),
    unexplained(
        "lag-without-age", "the metrics of a lag have no age", "mqproof.impl.broker.consumer_lag:_age_ms",
        _no_age,
    ),
    unexplained(
        "sends-not-limited", "any number of sends may wait for the disk",
        "mqproof.impl.broker.flow_control:SendGate._require_room", _no_check,
    ),
    unexplained(
        "half-messages-not-checked", "any number of transactions may be open",
        f"{_PROCESSORS}.send:_check_transaction", _no_check,
    ),
    unexplained(
        "never-far-behind", "a consumer far behind is not sent to the slave",
        f"{_PROCESSORS}.pull:is_far_behind", _is_near,
    ),
    unexplained(
        "registered-after-the-stop", "a broker that stops stays registered",
        "mqproof.impl.broker.registration:Registrar.unregister", _stays,
    ),
    unexplained(
        "commits-kept-at-the-slave", "the master does not receive the offsets committed at its slave",
        "mqproof.impl.broker.state.offsets:OffsetTable.newer_than", _none_newer,
    ),
    unexplained(
        "lost-reply-with-an-id", "the answer to a reply that is not stored has a message id",
        f"{_PROCESSORS}.replies:_answer_fields", _with_any_id,
    ),
    unexplained(
        "copy-without-flag", "the copy of a returned message has no flag", f"{_PROCESSORS}.retries:_again",
        _without_flag,
    ),
    unexplained(
        "fields-not-counted", "a header may have any number of fields",
        "mqproof.impl.remoting.command:_check_count", _not_counted,
    ),
    unexplained(
        "part-of-a-frame-not-awaited", "a connection with a part of a frame ends at the next scan",
        "mqproof.impl.remoting.channel:Channel.is_waiting_since", _any_part,
    ),
    unexplained(
        "later-claim-ignored", "any address may take over the id of a broker",
        "mqproof.impl.namesrv.route_table:RouteTable._is_outdated", _no_check,
    ),
    unexplained(
        "slashes-not-escaped", "standard JSON has slashes as they are",
        "mqproof.impl.remoting.java_json:_quick", _with_slashes,
    ),
    unexplained(
        "request-body-of-any-size", "a request may have a body of any size",
        "mqproof.impl.remoting.requests:limited", _as_it_is,
    ),
    *broker_cases.MUTANTS.values(),
    *broker_inspections.MUTANTS.values(),
    *client_inspections.MUTANTS.values(),
    *header_inspections.MUTANTS.values(),
    *inspected_stores.MUTANTS.values(),
    *inspected_logs.MUTANTS.values(),
    *member_inspections.MUTANTS.values(),
    *inspected_bounds.MUTANTS.values(),
    *state_inspections.MUTANTS.values(),
)  # fmt: skip
"""The mutants by name."""
