"""Mutants of a broker that the inspections of single cases detect: pulls, queues, members, and returns."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from typing import Any, Final
from unittest import mock

from mqproof.conformance.mutants.mutant import Mutant, by_name, unexplained
from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.broker import long_polling
from mqproof.impl.broker.processors import consumer_calls, groups, pull, queries, send
from mqproof.impl.broker.requests import administrative_events
from mqproof.impl.broker.requests.offset_commits import commit_offset
from mqproof.impl.broker.state import queue_locks
from mqproof.impl.broker.state.offsets import OffsetTable
from mqproof.impl.remoting.batch import split_batch
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.message import SYS_TRANSACTION_COMMIT, SYS_TRANSACTION_MASK
from mqproof.impl.store import delay

_BROKER: Final = "mqproof.impl.broker"
_PROCESSORS: Final = f"{_BROKER}.processors"

_hold, _tags, _queue_id, _messages = long_polling.PullHolds.hold, pull._tags, send._queue_id, send._messages
_first_since, _scheduled = queries._first_since, delay.scheduled
_status = consumer_calls._status
_persist, _change = OffsetTable.persist, AclFile.change
_emit, _Lease, _notify = administrative_events._emit, queue_locks._Lease, groups.notify


def _held_longer(*arguments: Any) -> Any:
    holds, topic, queue_id, offset, tag_codes, timeout_s, *owner = arguments
    return _hold(holds, topic, queue_id, offset, tag_codes, timeout_s + 0.01, *owner)


def _everything_for_blanks(expression: str | None, is_class_filter: bool) -> Collection[int]:
    found = _tags(expression, is_class_filter)
    return frozenset() if found is pull._NOTHING else found


def _first_channel(group: Any, client_id: str) -> Channel | None:
    return next((channel for channel, one in group.members.items() if one.client_id == client_id), None)


def _one_too_early(services: Any, topic: str, queue_id: int, timestamp_ms: int) -> int:
    return _first_since(services, topic, queue_id, timestamp_ms + 1) - 1


def _any_number(body: bytes, _: int) -> Any:
    return split_batch(body, 1 << 30)


def _at_once_if_committed(message: Any, levels_ms: Any) -> Any:
    is_committed = message.sys_flag & SYS_TRANSACTION_MASK == SYS_TRANSACTION_COMMIT
    return message if is_committed else _scheduled(message, levels_ms)


def _always_waits(*arguments: Any) -> Any:
    messages, _ = _messages(*arguments)
    return messages, True


def _corrected(result: Any, **_: object) -> Any:
    return result


def _first_queue(services: Any, asked: int, topic: Any) -> int:
    return 0 if asked < 0 else _queue_id(services, asked, topic)


def _as_asked(_services: object, topic: Any) -> Any:
    return topic


def _spaces_left_out(expression: Any, values: tuple[bytes | None, ...]) -> bool:
    pairs = zip(expression.names, values, strict=True)
    found: bool = expression.matches(
        {name: value.decode().strip() for name, value in pairs if value is not None}
    )
    return found


def _mutant(name: str, defect: str, where: str, wrong: Callable[..., Any]) -> Mutant:
    return unexplained(name, defect, where, wrong)


async def _clean_after_the_write(table: Any) -> None:
    await _persist(table)
    table._unwritten.is_any = False


async def _without_a_lock(file: Any, change: Any) -> None:
    file._changing = asyncio.Lock()
    await _change(file, change)


async def _status_10_ms_later(consumer: Channel, header: Any) -> Any:
    with mock.patch.object(consumer_calls, "_STATUS_TIMEOUT_S", 5.01):
        return await _status(consumer, header)


def _no_reset(services: Any, header: Any, *_: object) -> None:
    commit_offset(services, header)


def _own_account_only(services: Any, request: Any, channel: Any, subject: Mapping[str, str]) -> None:
    named = {name: value for name, value in subject.items() if name != "changed_account"}
    _emit(services, request, channel, named)


def _held_2_ms_longer(client_id: str, ends_ms: int) -> Any:
    return _Lease(client_id, ends_ms + 2)


def _until_a_quiet_one(services: Any, names: Iterable[str]) -> None:
    _notify(services, takewhile(lambda name: _is_notified(services, name), sorted(names)))


def _is_notified(services: Any, name: str) -> bool:
    group = services.groups.get(name)
    return group is None or group.notify_consumer_ids_changed_enable


def _known(_services: object, topic: str) -> TopicConfig:
    return TopicConfig(topic)


INSPECTIONS: Final[Mapping[str, str]] = {
    "held-a-hundredth-longer": "long polls",
    "blank-tags-mean-all": "pull cases",
    "first-connection-asked": "members",
    "upper-before-the-first": "queue extents",
    "batch-of-any-number": "many messages",
    "committed-not-delayed": "sent back",
    "wait-always": "slow disk",
    "slave-corrects-offsets": "requests at a slave",
    "broker-chooses-queue-0": "send cases",
    "attributes-of-the-request": "cases of administrators",
    "spaces-around-whole-numbers": "SQL expressions",
    "clean-after-the-write": "overlapping changes",
    "accounts-changed-without-a-lock": "overlapping changes of accounts",
    "resets-recorded-as-progress": "recorded events",
    "time-in-the-next-interval": "times of sends",
    "any-topic-has-time-spans": "unknown names",
    "no-group-is-notified-after-a-quiet-one": "late settings",
    "locked-2-ms-longer": "exact leases",
    "10-ms-longer-for-a-status": "exact limits",
    "changed-account-not-recorded": "recorded changes of accounts",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    _mutant(
        "held-a-hundredth-longer", "a pull is held a hundredth of a second longer than it asks",
        f"{_BROKER}.long_polling:PullHolds.hold", _held_longer,
    ),
    _mutant(
        "blank-tags-mean-all", "an expression that names no tag selects every message",
        f"{_PROCESSORS}.pull:_tags", _everything_for_blanks,
    ),
    _mutant(
        "first-connection-asked", "requests go to the oldest connection of a consumer",
        f"{_BROKER}.state.clients:ConsumerGroup.channel_of", _first_channel,
    ),
    _mutant(
        "upper-before-the-first", "a search by time returns the message before the first one at that time",
        f"{_PROCESSORS}.queries:_first_since", _one_too_early,
    ),
    _mutant(
        "batch-of-any-number", "a batch may have any number of messages", f"{_PROCESSORS}.send:split_batch",
        _any_number,
    ),
    _mutant(
        "committed-not-delayed", "a message from a transaction that is sent back is not delayed",
        f"{_BROKER}.requests.checks:scheduled", _at_once_if_committed,
    ),
    _mutant(
        "wait-always", "a send with WAIT=false waits for the disk", f"{_PROCESSORS}.send:_messages",
        _always_waits,
    ),
    _mutant(
        "slave-corrects-offsets", "a slave returns the end of its own queue as the next offset",
        f"{_PROCESSORS}.pull:replace", _corrected,
    ),
    _mutant(
        "broker-chooses-queue-0", "a send without a queue goes to queue 0", f"{_PROCESSORS}.send:_queue_id",
        _first_queue,
    ),
    _mutant(
        "attributes-of-the-request", "the attributes of a request replace those of the topic",
        f"{_PROCESSORS}.topic_admin:_with_its_attributes", _as_asked,
    ),
    _mutant(
        "spaces-around-whole-numbers", "a text with spaces around it counts as a whole number",
        "mqproof.impl.filtering.sql:Filter.matches_values", _spaces_left_out,
    ),
    _mutant(
        "clean-after-the-write", "an offset that is committed while the file is written counts as written",
        f"{_BROKER}.state.offsets:OffsetTable.persist", _clean_after_the_write,
    ),
    _mutant(
        "accounts-changed-without-a-lock", "a change of accounts begins before the one before has ended",
        "mqproof.impl.access.acl_file:AclFile.change", _without_a_lock,
    ),
    _mutant(
        "resets-recorded-as-progress", "the event log does not mark offsets that an operator resets",
        f"{_BROKER}.requests.administrative_events:commit", _no_reset,
    ),
    _mutant(
        "changed-account-not-recorded", "the event of a changed account does not name it",
        f"{_BROKER}.requests.administrative_events:_emit", _own_account_only,
    ),
    _mutant(
        "time-in-the-next-interval", "a send of 10 ms counts as one of 10 to 50 ms",
        f"{_BROKER}.flow_control:bisect_left", bisect_right,
    ),
    _mutant(
        "locked-2-ms-longer", "a lock is held 2 ms longer than its lease",
        f"{_BROKER}.state.queue_locks:_Lease", _held_2_ms_longer,
    ),
    _mutant(
        "10-ms-longer-for-a-status", "a broker waits 5.01 s for the offsets of a member",
        f"{_PROCESSORS}.consumer_calls:_status", _status_10_ms_later,
    ),
    _mutant(
        "any-topic-has-time-spans", "the time spans of an unknown topic are an empty list",
        f"{_PROCESSORS}.offset_admin:require_topic", _known,
    ),
    _mutant(
        "no-group-is-notified-after-a-quiet-one",
        "a group without notifications keeps the next ones from theirs", f"{_PROCESSORS}.groups:notify",
        _until_a_quiet_one,
    ),
)  # fmt: skip
