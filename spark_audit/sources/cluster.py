"""Collects what a running cluster offers, by requests that only read, as an event log and exported traces.

Brokers keep no history: messages become `append` events, committed offsets `offset_commit` events of now, and
subscriptions `subscribe` events. Each part that cannot be read becomes a line that is no event, so that the
audit treats it like missing rows.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from mqproof.impl.admin.admin import Admin, UnreachableError, address_of, read_body
from mqproof.impl.admin.brokers import config as broker_config
from mqproof.impl.admin.groups import connection_at
from mqproof.impl.admin.groups import settings as group_settings
from mqproof.impl.admin.messages import READER_GROUP
from mqproof.impl.admin.topics import topic_names
from mqproof.impl.client.connection.routes import subscribe_queues
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, RefusalError
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC
from mqproof.impl.remoting import address_server
from mqproof.impl.remoting.account_file import parse as parse_account
from mqproof.impl.remoting.bodies import AllTopics
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.message import KEYS, TAGS, StoredMessage
from mqproof.impl.replication.metadata import ConsumerOffsets
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address, AsyncioNetwork
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import production
from mqproof.impl.runtime.security.tls_file import load
from mqproof.impl.runtime.serving import run
from mqproof.report.printable import counted
from mqproof.spec.events import SCHEMA_VERSION, Event, Kind, encode

T = TypeVar("T")

_REQUEST_S: Final = 10.0
_WRONG_USE: Final = 2
_NO_ANSWER: Final = 4
_AT_ONCE: Final = 8
"""The most queues that are read at the same time."""
_PULL: Final = 32
_SHOWN_EVERY: Final = 10_000
"""How many messages are read between two lines of progress."""
_GROUPS_MAX: Final = 10_000
_QUEUES_MAX: Final = 65_536
_INTERNAL: Final = (
    *("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_", "rmq_sys_", "TBW102", "TRANS_CHECK_MAX_TIME_TOPIC", "%DLQ%"),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is read."""

    topics: tuple[str, ...] = ("*",)
    """Patterns of topics."""
    messages_max: int = 100_000
    """The most messages, the newest of each queue."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was written, and what it contains."""

    events: Path
    traces: Path | None
    origins: tuple[str, ...]
    """What was read, one line each."""
    missing: tuple[str, ...]
    """What could not be read."""
    waiting: tuple[tuple[str, str, int, int, int], ...]
    """Group, topic, messages not consumed, messages deleted before consumption, and members."""
    settings: dict[str, str]
    """The settings of the brokers that the audit uses, where all brokers agree."""


@dataclass(slots=True)
class _Collection:
    """The state of one collection."""

    admin: Admin
    bounds: Bounds
    stage: Callable[[str], None]
    masters: dict[str, Address] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Brokers that stopped to answer; they are not asked again."""
    missing: list[str] = field(default_factory=list)
    events: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    traces: list[bytes] = field(default_factory=list)
    offsets: dict[tuple[str, MessageQueue], int] = field(default_factory=dict)
    ends: dict[MessageQueue, tuple[int, int]] = field(default_factory=dict)
    members: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    async def ask(self, broker: str, what: str, asked: Callable[[], Awaitable[T]]) -> T | None:
        """Return an answer of a broker; None if there is none, which is recorded."""
        if broker in self.gone:
            return None
        try:
            async with asyncio.timeout(_REQUEST_S):
                return await asked()
        except (UnreachableError, TimeoutError):
            self._gone(broker, what)
        except ClientError as error:
            if isinstance(error, RefusalError):
                self.missing.append(f"{what} of {broker}: refused: {error}")
            else:  # GroupRequests has no class of its own for a connection that failed
                self._gone(broker, what)
        return None

    def _gone(self, broker: str, what: str) -> None:
        if broker not in self.gone:
            self.gone.add(broker)
            self.missing.append(f"broker {broker} does not answer since {what} was read")

    def add(self, event: Event) -> None:
        self.events[event.node].append(event)

    def now_us(self) -> int:
        return now_ms(self.admin.runtime.clock) * 1000


async def collect(admin: Admin, bounds: Bounds, folder: Path, stage: Callable[[str], None]) -> Collected:
    """Read the cluster and write its events and traces into the folder.

    Raises:
        UnreachableError: no name server answers. ClientError: it refuses, or knows no broker.
    """
    found = _Collection(admin, bounds, stage)
    stage("reading the brokers")
    info = await admin.cluster_info()
    for name, data in sorted(info.broker_addr_table.items()):
        if 0 in data.broker_addrs:
            found.masters[name] = address_of(data.broker_addrs[0])
        else:
            found.missing.append(f"broker {name} has no master")
    if not found.masters and not found.missing:
        raise ClientError("the name server knows no broker")
    names = await topic_names(admin)
    settings = await _settings(found)
    # Offsets first: a message that arrives later cannot make one look as if it were beyond its queue.
    await _read_offsets(found)
    groups = await _read_groups(found)
    chosen = [name for name in names if _is_chosen(name, bounds)]
    queues = await _read_ends(found, chosen)
    await _read_messages(found, queues)
    if TRACE_TOPIC in names:
        await _read_messages(found, await _read_ends(found, [TRACE_TOPIC]))
    _add_commits(found)
    return _written(found, folder, chosen, groups, settings)


def _is_chosen(topic: str, bounds: Bounds) -> bool:
    if topic.startswith(_INTERNAL) or topic == TRACE_TOPIC:
        return False
    own = topic.removeprefix("%RETRY%")
    is_pattern_of_all = "*" in bounds.topics
    return is_pattern_of_all or any(fnmatchcase(own, pattern) for pattern in bounds.topics)


async def _settings(found: _Collection) -> dict[str, str]:
    """Return the settings in which the brokers agree; others are recorded as missing."""
    found.stage("reading the settings of the brokers")
    wanted = ("flushDiskType", "messageDelayLevel", "maxHashSlotNum")
    values: dict[str, set[str]] = {name: set() for name in wanted}
    for name, address in found.masters.items():
        given = await found.ask(name, "the settings", partial(broker_config, found.admin, address))
        topics = await found.ask(name, "the topics", partial(_topics, found, address))
        found.counts["topics configured"] += topics or 0
        for key in wanted:
            if given is not None and given.get(key):
                values[key].add(given[key])
    return {key: next(iter(each)) for key, each in values.items() if len(each) == 1}


async def _topics(found: _Collection, address: Address) -> int:
    answer = await found.admin.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG)
    return len(read_body(AllTopics, answer).topic_config_table)


async def _read_offsets(found: _Collection) -> None:
    found.stage("reading the offsets of all groups")
    for name, address in found.masters.items():
        table = await found.ask(name, "the offsets", partial(_all_offsets, found, address))
        for key, offsets in (table or {}).items():
            topic, _, group = key.rpartition("@")
            for queue_id, offset in offsets.items():
                found.offsets[group, MessageQueue(topic, name, int(queue_id))] = offset


async def _all_offsets(found: _Collection, address: Address) -> dict[str, dict[int, int]]:
    answer = await found.admin.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
    return {key: dict(each) for key, each in read_body(ConsumerOffsets, answer).offset_table.items()}


async def _read_groups(found: _Collection) -> list[str]:
    """Record the members and subscriptions of all groups."""
    found.stage("reading the groups")
    names: set[str] = {group for group, _ in found.offsets}
    for name, address in found.masters.items():
        table = await found.ask(name, "the groups", partial(group_settings, found.admin, address))
        names.update(table or ())
    chosen = sorted(names)[:_GROUPS_MAX]
    if len(names) > _GROUPS_MAX:
        found.missing.append(f"{len(names) - _GROUPS_MAX} groups beyond the first {_GROUPS_MAX}")
    for name, address in found.masters.items():
        for group in chosen:
            what = f"group {group}"
            connection = await found.ask(name, what, partial(connection_at, found.admin, group, address))
            if connection is None:
                continue
            found.members[group] = max(found.members[group], len(connection.connection_set))
            for topic, each in connection.subscription_table.items():
                kind = "FUNCTION" if each.class_filter_mode else (each.expression_type or "TAG")
                attrs = {"type": kind, "expression": each.sub_string or "*"}
                since_us = each.sub_version * 1000 or found.now_us()
                found.add(Event(since_us, 0, name, Kind.SUBSCRIBE, topic=topic, group=group, attrs=attrs))
    return chosen


# --- messages


async def _read_ends(found: _Collection, topics: Sequence[str]) -> list[MessageQueue]:
    """Read the first and last offset of each queue of the topics."""
    found.stage(f"reading the queues of {counted(len(topics), 'topic')}")
    queues: list[MessageQueue] = []
    for topic in topics:
        try:
            route = await found.admin.route(topic)
        except NoRouteError:
            continue  # it was deleted in between
        except ClientError as error:
            found.missing.append(f"the route of {topic}: {error}")
            continue
        readable = {data.broker_name for data in route.queue_datas if data.perm & 4}
        if unreadable := {data.broker_name for data in route.queue_datas} - readable:
            found.missing.append(f"{topic} at {', '.join(sorted(unreadable))} has no read permission")
        queues += [each for each in subscribe_queues(topic, route) if each.broker_name in found.masters]
    if len(queues) > _QUEUES_MAX:
        found.missing.append(f"{len(queues) - _QUEUES_MAX} queues beyond the first {_QUEUES_MAX}")
    calls = GroupRequests(found.admin.session, READER_GROUP)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def ends(queue: MessageQueue) -> None:
        async with turn:
            what = f"the queue {queue}"
            first = await found.ask(queue.broker_name, what, lambda: calls.min_offset(queue))
            end = await found.ask(queue.broker_name, what, lambda: calls.max_offset(queue))
        if first is not None and end is not None:
            found.ends[queue] = (first, end)

    await asyncio.gather(*(ends(queue) for queue in queues[:_QUEUES_MAX]))
    return [queue for queue in queues if queue in found.ends]


async def _read_messages(found: _Collection, queues: Sequence[MessageQueue]) -> None:
    """Read the newest messages of each queue, an equal number of each."""
    filled = [queue for queue in queues if found.ends[queue][1] > found.ends[queue][0]]
    left, starts = found.bounds.messages_max, {}
    for number, queue in enumerate(sorted(filled, key=lambda each: _size(found, each))):
        share = left // (len(filled) - number)
        count = min(share, _size(found, queue))
        starts[queue], left = found.ends[queue][1] - count, left - count
        found.counts["messages not read"] += _size(found, queue) - count
    turn = asyncio.Semaphore(_AT_ONCE)

    async def pull(queue: MessageQueue) -> None:
        async with turn:
            await _pull(found, queue, starts[queue])

    found.stage(
        f"reading {counted(sum(found.ends[queue][1] - starts[queue] for queue in filled), 'message')}"
    )
    await asyncio.gather(*(pull(queue) for queue in filled))


def _size(found: _Collection, queue: MessageQueue) -> int:
    first, end = found.ends[queue]
    return end - first


async def _pull(found: _Collection, queue: MessageQueue, start: int) -> None:
    calls, at, end = GroupRequests(found.admin.session, READER_GROUP), start, found.ends[queue][1]
    while at < end:
        what = f"messages of {queue} from offset {at}"
        result = await found.ask(
            queue.broker_name,
            what,
            partial(calls.pull, queue, at, max_count=min(_PULL, end - at)),
        )
        if result is None:
            del found.ends[queue]  # its end was not reached
            return
        for stored in result.messages:
            if at <= stored.queue_offset < end:
                _add_message(found, queue, stored)
        if found.counts["messages read"] >= found.counts["messages shown"] + _SHOWN_EVERY:
            found.counts["messages shown"] = found.counts["messages read"]
            found.stage(f"read {found.counts['messages read']} messages")
        if result.next_offset <= at:
            return
        at = result.next_offset


def _add_message(found: _Collection, queue: MessageQueue, stored: StoredMessage) -> None:
    message = stored.message
    if queue.topic == TRACE_TOPIC:
        found.traces.append(message.body)
        found.counts["trace messages read"] += 1
        return
    found.counts["messages read"] += 1
    found.add(
        Event(
            stored.store_timestamp_ms * 1000,
            0,
            queue.broker_name,
            Kind.APPEND,
            msg_id=stored.message_id,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=stored.queue_offset,
            commit_offset=stored.commit_offset,
            keys=message.properties.get(KEYS),
            tags=message.properties.get(TAGS, ""),
            born_ts=message.born_timestamp_us,
            attrs={"size": str(stored.size)},
        )
    )


def _add_commits(found: _Collection) -> None:
    """Add the offsets of queues that were read up to their end."""
    for (group, queue), offset in sorted(found.offsets.items()):
        if queue in found.ends and queue.topic != TRACE_TOPIC:
            found.add(
                Event(
                    found.now_us(),
                    0,
                    queue.broker_name,
                    Kind.OFFSET_COMMIT,
                    topic=queue.topic,
                    queue_id=queue.queue_id,
                    queue_offset=offset,
                    group=group,
                )
            )


# --- writing


def _written(
    found: _Collection, folder: Path, topics: Sequence[str], groups: Sequence[str], settings: dict[str, str]
) -> Collected:
    events, traces = folder / "cluster.ndjson", folder / "traces.txt"
    with events.open("wb") as file:
        for node in sorted(found.events):
            for event in _numbered(found.events[node]):
                file.write(encode(event))
        for line in found.missing:
            file.write(msgspec.json.encode({"not read": line}) + b"\n")
    if found.traces:
        traces.write_bytes(b"".join(found.traces))
    counts = found.counts
    origins = (
        f"{counted(len(found.masters), 'broker')}, {counted(len(topics), 'topic')},"
        f" {counted(len(groups), 'group')}, {counted(len(found.offsets), 'offset')}",
        f"{counted(counts['messages read'], 'message')}, the newest of each queue;"
        f" {counts['messages not read']} older ones were not read (--messages)",
        counted(counts["trace messages read"], "trace message")
        + ("" if found.traces else f": no topic {TRACE_TOPIC}, or nothing in it"),
        "not in any of it: refused and unconfirmed sends, deliveries without trace, earlier offsets and"
        " subscriptions",
        *(f"not read: {line}" for line in found.missing),
    )
    return Collected(
        events,
        traces if found.traces else None,
        origins,
        tuple(found.missing),
        tuple(_waiting(found)),
        settings,
    )


def _numbered(events: Sequence[Event]) -> Iterator[Event]:
    """Number the events of a node. They begin at 1: the node's earlier events are not known."""
    ordered = sorted(events, key=lambda event: (event.ts, event.commit_offset or 0))
    for seq, event in enumerate(ordered, start=1):
        more: dict[str, Any] = {"schema": str(SCHEMA_VERSION)} if seq == 1 else {}
        yield msgspec.structs.replace(event, seq=seq, attrs={**event.attrs, **more})


def _waiting(found: _Collection) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield the groups that have not consumed messages of a topic, or missed some that were deleted."""
    behind: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for (group, queue), offset in found.offsets.items():
        if queue in found.ends:
            first, end = found.ends[queue]
            behind[group, queue.topic][0] += max(0, end - max(offset, first))
            behind[group, queue.topic][1] += max(0, first - offset)
    for (group, topic), (waiting, deleted) in sorted(behind.items()):
        if waiting or deleted:
            yield group, topic, waiting, deleted, found.members[group]


# --- the connection


class ClusterError(Exception):
    """The cluster cannot be read at all. The message is one line."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        """The exit code: 2 for wrong use, 4 if no name server answers."""


def collect_from(
    name_servers: str,
    bounds: Bounds,
    folder: Path,
    stage: Callable[[str], None],
    tls: Path | None = None,
    account: Path | None = None,
) -> Collected:
    """Connect, and collect.

    Raises:
        ClusterError: a value is wrong, or no name server answers. OSError: the folder cannot be written.
    """
    try:
        servers = address_server.parse(name_servers)
        if not servers:
            raise ValueError("HOST:PORT expected")
    except ValueError as error:
        raise ClusterError(f"--namesrv: {error}", _WRONG_USE) from None
    try:
        runtime = production(AsyncioNetwork(), load(str(tls)) if tls else None)
        credentials = parse_account(account.read_text(encoding="utf-8"), str(account)) if account else None
    except OSError as error:
        raise ClusterError(f"{error.filename}: {error.strerror}", _WRONG_USE) from None
    except (ConfigError, UnicodeDecodeError) as error:
        raise ClusterError(str(error), _WRONG_USE) from None

    async def main() -> Collected:
        async with Admin(servers, runtime, credentials) as admin:
            return await collect(admin, bounds, folder, stage)

    try:
        return run(main())
    except ClientError as error:
        raise ClusterError(str(error), _NO_ANSWER) from None
