"""Reads from a running cluster what a diagnosis needs. Every request only reads.

Each request may take 2 s, and independent ones run at the same time. What cannot be read is recorded as
missing, so that no answer rests on it.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from mqproof.impl.admin.admin import MASTER_ID, Admin, UnreachableError, address_of, read_body, read_header
from mqproof.impl.admin.brokers import config as broker_config
from mqproof.impl.admin.groups import connection_at
from mqproof.impl.admin.groups import settings as group_settings
from mqproof.impl.admin.topics import queue_of
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.model import ClientError, NoRouteError, RefusalError
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC, CallBegan, CallEnded, decode
from mqproof.impl.diagnosis.backlog_rules import Backlog
from mqproof.impl.diagnosis.evidence import (
    Call,
    Copy,
    Evidence,
    Expression,
    Group,
    Held,
    Member,
    Queue,
    QueueState,
)
from mqproof.impl.diagnosis.history import (
    DEAD_LETTER,
    DISCARD_TOPIC,
    HALF_TOPIC,
    OPERATION_TOPIC,
    RETRY,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    History,
)
from mqproof.impl.diagnosis.message_rules import confirmations, queue_at
from mqproof.impl.remoting.bodies import (
    PERM_READ,
    ConsumerConnection,
    GroupList,
    RunningInfo,
    Subscription,
    SubscriptionGroup,
    TopicRoute,
    TopicStats,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    UNIQUE_KEY_QUERY,
    ConsumerRequest,
    OffsetResponse,
    QueryMessageRequest,
    QueryOffsetRequest,
    QueueRequest,
    TopicRequest,
    ViewMessageRequest,
)
from mqproof.impl.remoting.message import KEYS, UNIQUE_KEY, StoredMessage, parse_offset_message_id
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.network import Address

T = TypeVar("T")

_REQUEST_S: Final = 2.0
_TIME_MAX: Final = 2**63 - 1
_COUNT_MAX: Final = 64
_TOPICS_MAX: Final = 500
"""The most topics that are searched for a message whose topic is not given."""
_GROUPS_MAX: Final = 32
_QUEUES_MAX: Final = 1024
_AT_ONCE: Final = 32
"""The most requests that wait for their answers at the same time."""
_TRANSACTIONS: Final = "CID_RMQ_SYS_TRANS"
_OPERATION_PULLS: Final = 32

Found = tuple[str, StoredMessage]
"""A record, and the name of the broker that has it."""


class SearchError(ValueError):
    """The search cannot be carried out as asked. The message says what to add."""


@dataclass(slots=True)
class Reader:
    """Reads a cluster through one administrator, and remembers what could not be read."""

    admin: Admin
    masters: dict[str, Address] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    """Brokers that did not answer."""
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _routes: dict[str, TopicRoute | None] = field(default_factory=dict)

    async def connect(self) -> None:
        """Read the list of brokers. Raises UnreachableError if no name server answers."""
        info = await self.admin.cluster_info()
        self.masters = {
            name: address_of(data.broker_addrs[min(data.broker_addrs)])
            for name, data in sorted(info.broker_addr_table.items())
            if data.broker_addrs
        }
        for name, data in info.broker_addr_table.items():
            if data.broker_addrs and MASTER_ID not in data.broker_addrs:
                self.missing.append(f"broker {name} has no master; its slave is read, which may be behind")

    async def ask(self, broker: str, asked: Awaitable[T]) -> T | None:
        """Return the answer of a broker, or None if it refuses or does not answer, which is recorded."""
        try:
            async with self._turn, asyncio.timeout(_REQUEST_S):
                return await asked
        except (UnreachableError, TimeoutError):
            self.silent.add(broker)
        except ClientError as error:
            self._lacks(str(error))
        return None

    def _lacks(self, line: str) -> None:
        if line not in self.missing:
            self.missing.append(line)

    async def route(self, topic: str) -> TopicRoute | None:
        if topic not in self._routes:
            try:
                self._routes[topic] = await self.admin.route(topic)
            except NoRouteError:
                self._routes[topic] = None
        return self._routes[topic]

    # --- messages

    async def find(self, topic: str, key: str, *, unique: bool) -> list[Found]:
        """Return the records of a topic with the key, each with the name of its broker."""
        names = list(self.masters)
        found = await asyncio.gather(
            *(self.ask(name, self._query(name, topic, key, unique=unique)) for name in names)
        )
        return [(name, stored) for name, each in zip(names, found, strict=True) for stored in each or ()]

    async def _query(self, name: str, topic: str, key: str, *, unique: bool) -> list[StoredMessage]:
        header = QueryMessageRequest(topic, key, _COUNT_MAX, 0, _TIME_MAX)
        more = {UNIQUE_KEY_QUERY: str(unique).lower()}
        try:
            answer = await self.admin.ask(self.masters[name], RequestCode.QUERY_MESSAGE, header, more=more)
        except RefusalError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return []
        records = _records(answer.body)
        if unique:
            return [each for each in records if each.message.properties.get(UNIQUE_KEY) == key]
        return [each for each in records if key in each.message.properties.get(KEYS, "").split()]

    async def at_offset_id(self, message_id: str) -> Found | None:
        """Return the record at the place that an offset message id names; None if it is none."""
        try:
            host, offset = parse_offset_message_id(message_id)
        except ValueError:
            return None
        address = Address(*host)
        if address not in self.masters.values():
            return None
        name = next(each for each, known in self.masters.items() if known == address)
        with suppress(ClientError, TimeoutError):
            header = ViewMessageRequest(offset)
            async with asyncio.timeout(_REQUEST_S):
                answer = await self.admin.ask(address, RequestCode.VIEW_MESSAGE_BY_ID, header)
            found = _records(answer.body)
            if len(found) == 1 and found[0].offset_message_id == message_id.upper():
                return name, found[0]
            self._lacks(f"broker {name} has no message at {offset}")
        return None

    async def is_indexed(self) -> None:
        """Record which brokers have no index of keys: there, a message that is not found proves nothing."""
        found = await asyncio.gather(
            *(self.ask(name, broker_config(self.admin, at)) for name, at in self.masters.items())
        )
        for name, settings in zip(self.masters, found, strict=True):
            if settings is not None and settings.get("messageIndexEnable", "true").lower() == "false":
                self._lacks(f"broker {name} has no index of keys (messageIndexEnable is false)")

    # --- queues

    async def queue_states(self, queues: Iterable[Queue]) -> dict[Queue, QueueState]:
        wanted = list(dict.fromkeys(queue for queue in queues if queue.broker in self.masters))[:_QUEUES_MAX]
        found = await asyncio.gather(*(self.ask(queue.broker, self._state(queue)) for queue in wanted))
        return {queue: state for queue, state in zip(wanted, found, strict=True) if state is not None}

    async def _state(self, queue: Queue) -> QueueState:
        header = QueueRequest(queue.topic, queue.id)
        address = self.masters[queue.broker]
        first = read_header(OffsetResponse, await self.admin.ask(address, RequestCode.GET_MIN_OFFSET, header))
        end = read_header(OffsetResponse, await self.admin.ask(address, RequestCode.GET_MAX_OFFSET, header))
        route = await self.route(queue.topic)
        perms = [data.perm for data in route.queue_datas if data.broker_name == queue.broker] if route else []
        return QueueState(first.offset, end.offset, all(perm & PERM_READ for perm in perms))

    async def committed(self, group: str, queues: Iterable[Queue]) -> dict[Queue, int]:
        wanted = list(dict.fromkeys(queue for queue in queues if queue.broker in self.masters))[:_QUEUES_MAX]
        found = await asyncio.gather(
            *(self.ask(each.broker, self._committed(group, each)) for each in wanted)
        )
        return {queue: at for queue, at in zip(wanted, found, strict=True) if at is not None and at >= 0}

    async def _committed(self, group: str, queue: Queue) -> int:
        """Return the offset, or -1 if the group has none."""
        header = QueryOffsetRequest(group, queue.topic, queue.id, set_zero_if_not_found=False)
        try:
            answer = await self.admin.ask(
                self.masters[queue.broker], RequestCode.QUERY_CONSUMER_OFFSET, header
            )
        except RefusalError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return -1
        return read_header(OffsetResponse, answer).offset

    # --- groups

    async def groups_of(self, topic: str) -> list[str]:
        found = await asyncio.gather(*(self.ask(name, self._groups(name, topic)) for name in self.masters))
        return sorted({group for each in found for group in each or ()})[:_GROUPS_MAX]

    async def _groups(self, name: str, topic: str) -> list[str]:
        try:
            answer = await self.admin.ask(
                self.masters[name], RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(topic)
            )
        except RefusalError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return []
        return read_body(GroupList, answer).group_list

    async def group(self, name: str, queues: Sequence[Queue]) -> Group:
        """Return the members of the group, their queues, and its offsets in these queues."""
        at = list(self.masters)
        connections = await asyncio.gather(*(self.ask(each, self._connection(each, name)) for each in at))
        settings = await asyncio.gather(*(self.ask(each, self._settings(each, name)) for each in at))
        offsets = await self.committed(name, queues)
        connected = [each for each in connections if each is not None]
        where = {
            member.client_id: broker
            for broker, each in zip(at, connections, strict=True)
            for member in (each.connection_set if each else ())
        }
        members = await asyncio.gather(
            *(self._member(name, client, where[client]) for client in sorted(where))
        )
        expressions = {
            topic: _expression(each)
            for connection in connected
            for topic, each in connection.subscription_table.items()
        }
        return Group(
            name,
            tuple(members),
            expressions,
            broadcast=any(each.message_model == "BROADCASTING" for each in connected),
            enabled=all(each.consume_enable for each in settings if each is not None),
            offsets=offsets,
        )

    async def _connection(self, broker: str, group: str) -> ConsumerConnection | None:
        return await connection_at(self.admin, group, self.masters[broker])

    async def _settings(self, broker: str, group: str) -> SubscriptionGroup | None:
        # Of all groups, because a broker of 5.5.0 creates a group that is asked for by its name.
        return (await group_settings(self.admin, self.masters[broker])).get(group)

    async def _member(self, group: str, client_id: str, broker: str) -> Member:
        header = ConsumerRequest(group, client_id, jstack_enable=False)
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        try:
            async with self._turn, asyncio.timeout(_REQUEST_S):
                info = read_body(RunningInfo, await self.admin.ask(self.masters[broker], code, header))
        except (ClientError, TimeoutError):
            return Member(client_id)  # a client of another language may not know the request
        queues = {}
        for key, held in info.mq_table.items():
            named = queue_of(key)
            if not held.droped:
                queues[Queue(named.topic, named.broker_name, named.queue_id)] = Held(
                    held.cached_msg_count,
                    held.cached_msg_min_offset,
                    held.cached_msg_max_offset,
                    held.last_consume_timestamp,
                    held.last_pull_timestamp,
                )
        return Member(client_id, queues, {each.topic: _expression(each) for each in info.subscription_set})

    # --- traces and transactions

    async def calls(self, message_id: str) -> tuple[Call, ...]:
        """Return the calls of listeners with the message, as the trace topic has them."""
        if await self.route(TRACE_TOPIC) is None:
            return ()
        stored = await self.find(TRACE_TOPIC, message_id, unique=False)
        records = [record for _, each in stored for record in decode(each.message.body)]
        begun = {each.request_id: each for each in records if isinstance(each, CallBegan)}
        ended = {each.request_id: each for each in records if isinstance(each, CallEnded)}
        found = []
        for request, call in begun.items():
            if call.message_id == message_id:
                end = ended.get(request)
                found.append(Call(call.group, end.time_ms if end else call.time_ms, end.ok if end else None))
        return tuple(sorted(found, key=lambda each: each.time_ms))

    async def is_done(self, half: Copy) -> bool | None:
        """Return whether an operation marks the half message as done; None if that cannot be read."""
        if half.queue.broker not in self.masters:
            return None
        queues = [Queue(topic, half.queue.broker, 0) for topic in (HALF_TOPIC, OPERATION_TOPIC)]
        progress = await self.committed(_TRANSACTIONS, queues)
        if progress.get(queues[0], 0) > half.offset:
            return True
        entries = await self._operations(queues[1], progress.get(queues[1], 0))
        return None if entries is None else half.offset in entries

    async def _operations(self, queue: Queue, begin: int) -> set[int] | None:
        """Return the half messages' offsets that the newest operations name."""
        if await self.route(queue.topic) is None:
            # Ours creates the topic with its first operation. 4.9 has it, and refuses pulls of it.
            state = (await self.queue_states([queue])).get(queue)
            return set() if state is not None and state.end <= begin else None
        from mqproof.impl.admin.messages import READER_GROUP
        from mqproof.impl.client.consuming.group_requests import GroupRequests
        from mqproof.impl.client.model import MessageQueue

        calls, found, at = GroupRequests(self.admin.session, READER_GROUP), set[int](), begin
        named = MessageQueue(queue.topic, queue.broker, queue.id)
        for _ in range(_OPERATION_PULLS):
            result = await self.ask(queue.broker, calls.pull(named, at))
            if result is None:
                return None
            for stored in result.messages:
                texts = stored.message.body.decode("ascii", errors="replace").split(",")
                found.update(int(text) for text in texts if text.isdecimal())
            if result.next_offset <= at or not result.messages:
                return found
            at = result.next_offset
        return None


def _records(body: bytes) -> list[StoredMessage]:
    try:
        return list(read_records(body))
    except ValueError as error:
        raise ClientError(f"the answer is invalid: {error}") from None


def _expression(subscription: Subscription) -> Expression:
    kind = subscription.expression_type or "TAG"
    return Expression(
        subscription.sub_string or "*",
        "FUNCTION" if subscription.class_filter_mode else kind,
        max(0, subscription.sub_version),
    )


# --- questions


async def read_message(
    reader: Reader, message_id: str, topic: str | None, group: str | None, history: History
) -> Evidence:
    """Collect the evidence about one message. Raises SearchError and ClientError."""
    topic, message_id, main = await _located(reader, message_id, topic or history.topic)
    groups = sorted({*history.groups, *([group] if group else await _known_groups(reader, topic))})
    inside = [SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, DISCARD_TOPIC]
    inside += [prefix + each for each in groups for prefix in (RETRY, DEAD_LETTER)]
    hidden = await asyncio.gather(*(reader.find(each, message_id, unique=True) for each in inside))
    await reader.is_indexed()
    copies = tuple(_copy(broker, stored) for records in (main, *hidden) for broker, stored in records)
    confirmed = [queue for event in confirmations(history) if (queue := queue_at(event))]
    queues = [*(copy.queue for copy in copies), *confirmed]
    read = await asyncio.gather(*(reader.group(each, queues) for each in groups))
    states = await reader.queue_states(queues)
    calls = await reader.calls(message_id)
    half = [copy for copy in copies if copy.queue.topic == HALF_TOPIC]
    named = {queue.broker for queue in confirmed}
    return Evidence(
        message_id,
        now_ms(reader.admin.runtime.clock),
        topic,
        None if topic is None else await reader.route(topic) is not None,
        cluster=True,
        copies=copies,
        queues=states,
        groups={each.name: each for each in read},
        calls=calls,
        half_is_done=await reader.is_done(half[-1]) if half else None,
        history=history,
        missing=tuple(reader.missing),
        silent_brokers=tuple(sorted({*reader.silent, *(named - reader.masters.keys())})),
    )


async def _known_groups(reader: Reader, topic: str | None) -> list[str]:
    return await reader.groups_of(topic) if topic else []


async def _located(reader: Reader, message_id: str, topic: str | None) -> tuple[str | None, str, list[Found]]:
    """Return the message's topic and unique key, and its records in the topic."""
    if found := await reader.at_offset_id(message_id):
        _, stored = found
        key = stored.message.properties.get(UNIQUE_KEY)
        named = topic or _topic_of(stored)
        if key is None:
            return named, message_id, [found]
        return named, key, await reader.find(named, key, unique=True)
    if topic is not None:
        return topic, message_id, await reader.find(topic, message_id, unique=True)
    return await _searched(reader, message_id)


async def _searched(reader: Reader, message_id: str) -> tuple[str | None, str, list[Found]]:
    """Search all topics, because brokers look a message up by its topic and key."""
    from mqproof.impl.admin.topics import topic_names

    names = await topic_names(reader.admin)
    internal = [SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC]
    usual = [name for name in names if not name.startswith(("%", "RMQ_SYS_", "rmq_sys_"))]
    if len(usual) > _TOPICS_MAX:
        raise SearchError(f"the cluster has {len(usual)} topics: name the message's topic with --topic")
    for batch in (internal, usual):
        found = await asyncio.gather(*(reader.find(name, message_id, unique=True) for name in batch))
        for name, records in zip(batch, found, strict=True):
            if not records:
                continue
            if name in usual:
                return name, message_id, records
            if (real := _topic_of(records[-1][1])) and not real.startswith("%"):
                return real, message_id, await reader.find(real, message_id, unique=True)
    return None, message_id, []


def _topic_of(stored: StoredMessage) -> str:
    properties = stored.message.properties
    return properties.get("RETRY_TOPIC") or properties.get("REAL_TOPIC") or stored.message.topic


def _copy(broker: str, stored: StoredMessage) -> Copy:
    message = stored.message
    return Copy(
        Queue(message.topic, broker, message.queue_id),
        stored.queue_offset,
        stored.commit_offset,
        stored.store_timestamp_ms,
        message.properties,
        message.reconsume_times,
    )


async def read_backlog(reader: Reader, topic: str, group: str) -> Backlog:
    """Collect the evidence about a group and a topic. Raises ClientError."""
    route = await reader.route(topic)
    queues: list[Queue] = []
    newest: dict[Queue, int] = {}
    for name in (topic, RETRY + group, DEAD_LETTER + group):
        found = await reader.route(name)
        for data in found.queue_datas if found else ():
            count = min(data.read_queue_nums if name == topic else data.write_queue_nums, _QUEUES_MAX)
            queues += [Queue(name, data.broker_name, number) for number in range(max(count, 0))]
        newest |= await _newest(reader, name) if found else {}
    if len(queues) > _QUEUES_MAX:
        reader.missing.append(f"{len(queues)} queues, of which the first {_QUEUES_MAX} were read")
    found_group = await reader.group(
        group, [each for each in queues if not each.topic.startswith(DEAD_LETTER)]
    )
    states: Mapping[Queue, QueueState] = await reader.queue_states(queues)
    silent = [f"broker {name} does not answer" for name in sorted(reader.silent)]
    return Backlog(
        topic,
        route is not None,
        now_ms(reader.admin.runtime.clock),
        found_group,
        states,
        newest,
        (*reader.missing, *silent),
    )


async def _newest(reader: Reader, topic: str) -> dict[Queue, int]:
    async def at(name: str) -> dict[Queue, int]:
        answer = await reader.admin.ask(
            reader.masters[name], RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic)
        )
        table = read_body(TopicStats, answer).offset_table
        found = {}
        for key, extent in table.items():
            queue = queue_of(key)
            named = Queue(queue.topic, queue.broker_name, queue.queue_id)
            found[named] = extent.last_update_timestamp
        return found

    route = await reader.route(topic)
    brokers = (
        [data.broker_name for data in route.queue_datas if data.broker_name in reader.masters]
        if route
        else []
    )
    answers = await asyncio.gather(*(reader.ask(name, at(name)) for name in brokers))
    return {queue: time for each in answers for queue, time in (each or {}).items()}
