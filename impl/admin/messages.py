"""Operations on messages: look them up by position, key or unique key, or read them queue by queue."""

from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from mqproof.impl.admin.admin import Admin, read_body
from mqproof.impl.client.connection.records import read_records
from mqproof.impl.client.connection.routes import subscribe_queues
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.model import ClientError, MessageQueue, Outcome, RefusalError
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.client.tracing.trace_records import TRACE_TOPIC, TraceRecord, decode, keys_of
from mqproof.impl.remoting.bodies import ConsumedDirectly, QueueEntries
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    UNIQUE_KEY_QUERY,
    ConsumerRequest,
    QueryMessageRequest,
    QueueEntriesRequest,
    ViewMessageRequest,
)
from mqproof.impl.remoting.message import (
    DELAY,
    KEYS,
    RETRY_PREFIX,
    RETRY_TOPIC,
    TAGS,
    TIMER_REQUESTS,
    UNIQUE_KEY,
    StoredMessage,
    parse_offset_message_id,
)
from mqproof.impl.runtime.network import Address

READER_GROUP: Final = "TOOLS_CONSUMER"
"""The group that reads messages for tools; brokers have it from their first start."""

RESENDER_GROUP: Final = "ReSendMsgById"

_COUNT_MAX: Final = 32
_ROOM_BYTES: Final = 1 << 20
"""The size of a batch of messages, decompressed: every queue holds one at the same time."""
_OF_DELIVERY: Final = frozenset({DELAY, *TIMER_REQUESTS})
"""Properties that would delay a copy."""
_INDEX_KIND: Final = "indexType"
"""A field that brokers of 5.x read."""
TIME_MAX: Final = 2**63 - 1


class KeyKind(Enum):
    """The kind of key by which a message is looked up."""

    KEY = "K"
    """A word of KEYS."""
    TAG = "T"
    """The message's tag. Only brokers of 5.x index tags."""
    UNIQUE = "U"
    """The producer's unique key."""


async def consume_directly(
    admin: Admin, broker: Address, group: str, client_id: str, message_id: str
) -> ConsumedDirectly:
    """Have one member of a group consume a message, given by its offset message id.

    The offsets of the group do not matter. Raises RefusalError when the broker has no such member, or the
    member does not respond in time.
    """
    header = ConsumerRequest(group, client_id, msg_id=message_id)
    return read_body(ConsumedDirectly, await admin.ask(broker, RequestCode.CONSUME_MESSAGE_DIRECTLY, header))


async def resend(admin: Admin, stored: StoredMessage) -> Outcome:
    """Send a message to its topic again, under the same unique key, so that every group receives it again."""
    producer = Producer(admin.session, ProducerConfig(group=RESENDER_GROUP))
    # The body is already decompressed, all other flags belong to the first copy, and the birth time is new.
    copy = replace(stored.message, sys_flag=0, born_timestamp_ms=0, reconsume_times=0)
    return await producer.send(copy)


async def resend_dead_letter(admin: Admin, group: str, stored: StoredMessage) -> Outcome:
    """Send a dead letter of a group to its retry topic, so that this group alone receives it again.

    It keeps its unique key and its topic, and can fail as often as a new message before it is a dead letter
    again. The dead letter itself stays where it is.
    """
    message = stored.message
    origin = message.properties.get(RETRY_TOPIC, message.topic)
    properties = {name: value for name, value in message.properties.items() if name not in _OF_DELIVERY}
    copy = replace(
        message,
        topic=RETRY_PREFIX + group,
        properties={**properties, RETRY_TOPIC: origin},
        sys_flag=0,
        born_timestamp_ms=0,
        reconsume_times=0,
    )
    return await Producer(admin.session, ProducerConfig(group=RESENDER_GROUP)).send(copy)


async def by_offset_id(admin: Admin, message_id: str) -> StoredMessage:
    """Return the message at the position in the broker's identifier.

    Raises ClientError when it is not such an identifier, and RefusalError when there is no message.
    """
    try:
        address, offset = parse_offset_message_id(message_id)
    except ValueError:
        raise ClientError(
            f"{message_id!r} is not an offset message id, 32 or 56 hex digits expected"
        ) from None
    header = ViewMessageRequest(offset)
    answer = await admin.ask(Address(*address), RequestCode.VIEW_MESSAGE_BY_ID, header)
    found = _records_of(answer.body)
    if len(found) != 1:
        raise ClientError(f"the answer has {len(found)} messages, the one at {message_id} expected")
    return found[0]


async def by_offset(admin: Admin, queue: MessageQueue, offset: int) -> StoredMessage:
    """Return the message at an offset of a queue. Raises ClientError when there is none."""
    calls = GroupRequests(admin.session, READER_GROUP)
    result = await calls.pull(queue, offset, max_count=1)
    for stored in result.messages:
        if stored.queue_offset == offset:
            return stored
    begin, end = result.min_offset, result.max_offset
    known = f"its messages are at {begin} to {end - 1}" if begin < end else "it is empty"
    raise ClientError(f"{queue} has no message at offset {offset}: {known}")


async def queue_entries(
    admin: Admin, queue: MessageQueue, first: int, count: int, group: str | None = None
) -> QueueEntries:
    """Return entries of a consume queue, and with a group its subscription to the topic."""
    masters = await admin.masters_of(queue.topic)
    if queue.broker_name not in masters:
        raise ClientError(f"topic {queue.topic} has no broker {queue.broker_name}")
    header = QueueEntriesRequest(queue.topic, queue.queue_id, first, count, group)
    return read_body(
        QueueEntries, await admin.ask(masters[queue.broker_name], RequestCode.QUERY_CONSUME_QUEUE, header)
    )


async def by_key(
    admin: Admin,
    topic: str,
    key: str,
    *,
    count_max: int = 64,
    begin_ms: int = 0,
    end_ms: int = TIME_MAX,
    kind: KeyKind = KeyKind.KEY,
    cluster: str | None = None,
) -> list[StoredMessage]:
    """Return the topic's messages that have the key, oldest first. The list is empty if there are none.

    The index finds candidates by hash; the keys themselves are compared here. With a cluster, its brokers are
    queried.
    """
    header = QueryMessageRequest(topic, key, count_max, begin_ms, end_ms)
    more = {UNIQUE_KEY_QUERY: str(kind is KeyKind.UNIQUE).lower()}
    if kind is KeyKind.TAG:
        more[_INDEX_KIND] = kind.value
    found: list[StoredMessage] = []
    for broker in (await admin.masters_of(topic, cluster)).values():
        try:
            found += _records_of((await admin.ask(broker, RequestCode.QUERY_MESSAGE, header, more=more)).body)
        except RefusalError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
    matching = [stored for stored in found if key in _keys(stored, kind)]
    return sorted(matching, key=lambda stored: stored.store_timestamp_ms)[:count_max]


async def traces_of(
    admin: Admin, message_id: str, topic: str = TRACE_TOPIC, *, begin_ms: int = 0, end_ms: int = TIME_MAX
) -> list[TraceRecord]:
    """Return the trace records of a message, oldest first.

    The first 64 trace messages about it are read. Clients may lose records, so an absent one proves nothing.
    """
    stored = await by_key(admin, topic, message_id, begin_ms=begin_ms, end_ms=end_ms)
    records = [record for one in stored for record in decode(one.message.body)]
    # A trace message that was sent again has the same records.
    own = dict.fromkeys(record for record in records if message_id in keys_of([record]))
    return sorted(own, key=lambda record: record.time_ms)


async def read(
    admin: Admin,
    topic: str,
    *,
    only: MessageQueue | None = None,
    tags: str | MessageSelector = "*",
    begin_ms: int | None = None,
    end_ms: int | None = None,
    first_offset: int = 0,
    group: str = READER_GROUP,
) -> AsyncGenerator[tuple[MessageQueue, StoredMessage], None]:
    """Yield the topic's messages from an offset on, queue by queue.

    Each queue is read up to its end at the time when its turn comes. With times, only messages stored from
    `begin_ms` until `end_ms` are yielded. With `only`, one queue is read; raises ClientError when the topic
    does not have it. `group` is the group of the requests; its offsets do not change.
    """
    calls = GroupRequests(admin.session, group)
    queues = subscribe_queues(topic, await admin.route(topic))
    if only is not None:
        if only not in queues:
            raise ClientError(f"topic {topic} has no readable queue {only.broker_name}:{only.queue_id}")
        queues = [only]
    for queue in queues:
        least, end = await calls.min_offset(queue), await calls.max_offset(queue)
        at = max(least, first_offset, 0 if begin_ms is None else await _before(calls, queue, begin_ms))
        while at < end:
            result = await calls.pull(queue, at, max_count=_COUNT_MAX, tags=tags)
            for stored in result.messages:
                time_ms = stored.store_timestamp_ms
                if (begin_ms or 0) <= time_ms <= (end_ms or TIME_MAX) and stored.queue_offset < end:
                    yield queue, stored
            if result.next_offset <= at:
                break  # the queue has no more messages, although its reported end was higher
            at = result.next_offset


async def in_time_order(
    admin: Admin, topic: str, *, begin_ms: int, end_ms: int
) -> AsyncIterator[tuple[MessageQueue, StoredMessage]]:
    """Yield the topic's messages stored from `begin_ms` until `end_ms`, in the order of their store times.

    Each queue is read in batches, when its turn comes.
    """
    readers = [
        _in_queue(GroupRequests(admin.session, READER_GROUP), queue, begin_ms, end_ms)
        for queue in subscribe_queues(topic, await admin.route(topic))
    ]
    heads: list[tuple[int, MessageQueue, int]] = []
    first: dict[int, StoredMessage] = {}

    async def advance(number: int) -> None:
        async for queue, stored in readers[number]:
            first[number] = stored
            heappush(heads, (stored.store_timestamp_ms, queue, number))
            return

    for number in range(len(readers)):
        await advance(number)
    while heads:
        _, queue, number = heappop(heads)
        yield queue, first.pop(number)
        await advance(number)


async def _in_queue(
    calls: GroupRequests, queue: MessageQueue, begin_ms: int, end_ms: int
) -> AsyncIterator[tuple[MessageQueue, StoredMessage]]:
    at, end = await _before(calls, queue, begin_ms), await calls.max_offset(queue)
    while at < end:
        result = await calls.pull(queue, at, max_count=_COUNT_MAX, room=lambda: _ROOM_BYTES)
        for stored in result.messages:
            if stored.store_timestamp_ms > end_ms:
                return
            if stored.store_timestamp_ms >= begin_ms:
                yield queue, stored
        if result.next_offset <= at:
            return  # the queue has no more messages, although its reported end was higher
        at = result.next_offset


async def _before(calls: GroupRequests, queue: MessageQueue, begin_ms: int) -> int:
    """Return an offset that no message stored from `begin_ms` on precedes."""
    # The nearest message may be any of those with one store time, so the search is for the time before.
    return await calls.search_offset(queue, max(0, begin_ms - 1))


def _records_of(body: bytes) -> list[StoredMessage]:
    try:
        return list(read_records(body))
    except ValueError as error:
        raise ClientError(f"the answer is invalid: {error}") from None


def _keys(stored: StoredMessage, kind: KeyKind) -> list[str]:
    properties = stored.message.properties
    if kind is KeyKind.KEY:
        return properties.get(KEYS, "").split()
    return [properties.get(TAGS if kind is KeyKind.TAG else UNIQUE_KEY, "")]
