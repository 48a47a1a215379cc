"""SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE: check, store the messages, answer the status.

See docs/reference/protocol/sending.md, "Send requests" and "Batches"; docs/reference/protocol/storing.md,
"Put statuses".
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

import msgspec

from mqproof.impl.broker import half_messages, timed_messages
from mqproof.impl.broker.processors.retries import dead_letter_topic, is_given_up
from mqproof.impl.broker.requests.checks import require_group, require_master, scheduled_or_refused
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.topics import DEFAULT_TOPIC
from mqproof.impl.broker.state.traffic import OTHERS
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.batch import split_batch
from mqproof.impl.remoting.bodies import PERM_WRITE, TopicConfig
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import HeaderError, SendRequest
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.message import (
    DELAY,
    NAME_END,
    RETRY_PREFIX,
    RETRY_TOPIC,
    SYS_MULTI_TAGS,
    SYS_TRANSACTION_MASK,
    SYS_TRANSACTION_PREPARED,
    TIMER_REQUESTS,
    UNIQUE_KEY,
    VALUE_END,
    WAIT,
    Batch,
    Message,
    decode_pairs,
    decode_properties,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.remoting.topic_names import NOT_FOR_CLIENTS, name_problem
from mqproof.impl.store.delay import SCHEDULE_TOPIC
from mqproof.impl.store.results import STORED, PutResult, PutStatus
from mqproof.spec.events import Kind

_CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
    PutStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
    PutStatus.UNKNOWN_ERROR: ResponseCode.SYSTEM_ERROR,
    PutStatus.OS_PAGECACHE_BUSY: ResponseCode.SYSTEM_ERROR,
    PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH: ResponseCode.SYSTEM_ERROR,
}
"""Maps every put status to its response code; a test fails if a status is missing."""

_LONG_NAMES: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
"""The requests whose fields have long names."""

_BATCH_MESSAGES_MAX: Final = 16_384
"""The most messages in one batch: no other client is served while they are stored."""

_DELAYS: Final = frozenset({DELAY, *TIMER_REQUESTS, timed_messages.RECALLED_KEY})
"""Most messages have none of these properties, and need no closer look."""

_UNUSUAL_IN_BATCH: Final = _DELAYS | {WAIT}
"""The same for a message of a batch."""

_TRANSACTION: Final = "transaction"
"""The type of half messages in RocketMQ's metrics."""
_MULTI_TAG: Final = "MULTI_TAG"
_SHARDING_KEY: Final = "__SHARDINGKEY"
"""The property by which released brokers recognise an ordered message."""


class _Target(msgspec.Struct, frozen=True):
    """The topic and queue in which a send is stored.

    For a retry beyond the limit this is the dead-letter topic, not the topic of the request.
    """

    topic: TopicConfig
    queue_id: int
    dead_letter_of: str | None = None
    """The group whose dead letter the message becomes."""


def send_message(services: Services, request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
    """Store the message or the batch and answer with one of the four stored statuses, or refuse."""
    try:
        header = read_header(request)
        require_master(services)
        if header.topic in NOT_FOR_CLIENTS:
            raise RefusedError(ResponseCode.NO_PERMISSION, f"clients may not send to topic {header.topic}")
        topic = services.topics.get(header.topic)
        if topic is None or header.topic.startswith(RETRY_PREFIX):
            return _send_when_made(services, request, header, channel)
        return _store(services, request, header, _checked(services, header, topic), channel)
    except (RefusedError, HeaderError) as error:
        return refused(services, request, error)


async def _send_when_made(
    services: Services, request: Command, header: SendRequest, channel: Channel
) -> Reply:
    """Send like `send_message`, after creating the topic if necessary."""
    try:
        with services.sends.admitted(len(request.body)):
            target = await _target(services, header, channel)
        return await _store(services, request, header, target, channel)
    except RefusedError as error:
        return refused(services, request, error)


def _store(
    services: Services, request: Command, header: SendRequest, target: _Target, channel: Channel
) -> Later:
    """Store the messages together with all others of this turn of the event loop.

    The answer is sent when their status is known.
    """
    messages, wait = _messages(services, request, header, target, channel)
    # A send that only waits for the end of this turn does not indicate that the disk is slow.
    ticket = None if services.store.confirms_at_once(wait) else services.sends.enter(len(request.body))
    reply, first = Later(), messages[0]
    # A turn may store thousands of messages: their memory is used again at once, unless events need them.
    reported = messages if services.events is not None and not request.is_oneway else []

    def done(results: list[PutResult]) -> None:
        if ticket is not None:
            services.sends.leave(ticket)
        if not reply.is_ended:
            reply.set(_answer(services, request, target, first, reported, wait, results))

    services.store.put_soon(messages, done, wait=wait)
    return reply


def _answer(
    services: Services,
    request: Command,
    target: _Target,
    first: Message,
    reported: Sequence[Message],
    wait: bool,
    results: list[PutResult],
) -> Command:
    result, tracing = results[0], services.tracing_fields()
    code = _CODES[result.status]
    if result.status not in STORED:
        services.statistics.failed_puts.add(len(results))
        return request.answer(code, tracing, remark=result.reason)
    count = len(results)
    stored_bytes = result.stored_bytes if count == 1 else sum([each.stored_bytes for each in results])
    services.statistics.put(target.topic.topic_name, count, len(request.body))
    traffic = services.statistics.traffic
    message_type = _message_type(first)
    traffic.stored(first.topic, message_type, count, stored_bytes)
    if message_type == _TRANSACTION:
        services.transactions.note_half(first, result)
    if target.dead_letter_of is not None:
        traffic.dead_letter(first.properties.get(RETRY_TOPIC, OTHERS), target.dead_letter_of)
    if services.events is not None:
        for message, its_result in zip(reported, results, strict=False):
            _report(services, message, wait, its_result)
    fields = headers.write_send_response(
        msg_id=result.message_id if count == 1 else ",".join([each.message_id for each in results]),
        queue_id=target.queue_id,
        queue_offset=result.queue_offset,
        transaction_id=first.properties.get(UNIQUE_KEY),
        recall_handle=timed_messages.handle_of(first, services.config.name),
    )
    fields.update(tracing)
    return request.answer(code, fields, remark=result.reason or None)


def refused(services: Services, request: Command, error: RefusedError | HeaderError) -> Command:
    code, remark = ResponseCode.SYSTEM_ERROR, str(error)
    if isinstance(error, RefusedError):
        code, remark = error.code, error.remark
    return request.answer(code, services.tracing_fields(), remark=remark)


def read_header(request: Command) -> SendRequest:
    """Return the header, with its long or one-letter field names. Raises HeaderError."""
    if request.code in _LONG_NAMES:
        return headers.read(SendRequest, request.fields)
    return headers.read_send_v2(request.fields)


# Topic and queue.


async def _target(services: Services, header: SendRequest, channel: Channel) -> _Target:
    topic = services.topics.get(header.topic) or await _made(services, header, channel)
    target = _checked(services, header, topic)
    if header.topic.startswith(RETRY_PREFIX):
        name = header.topic.removeprefix(RETRY_PREFIX)
        group = require_group(services, name, channel)
        if is_given_up(header.reconsume_times or 0, header.max_reconsume_times, group):
            return _Target(await dead_letter_topic(services, name, channel), 0, dead_letter_of=name)
    return target


def _checked(services: Services, header: SendRequest, topic: TopicConfig) -> _Target:
    if topic.order and not services.config.permission & PERM_WRITE:
        raise RefusedError(ResponseCode.NO_PERMISSION, "the broker has no write permission")
    return _Target(topic, _queue_id(services, header.queue_id, topic))


async def _made(services: Services, header: SendRequest, channel: Channel) -> TopicConfig:
    if problem := name_problem(header.topic):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, problem)
    template = header.default_topic or DEFAULT_TOPIC
    made = None
    if (
        services.config.auto_create_topics
        or template != DEFAULT_TOPIC
        or header.topic.startswith(RETRY_PREFIX)
    ):
        made = await services.topics.create_for_send(
            header.topic, template, header.default_topic_queue_nums, channel
        )
    if made is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist")
    return made


def _queue_id(services: Services, asked: int, topic: TopicConfig) -> int:
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    if asked >= queues:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"queue {asked} of topic {topic.topic_name}, which has {queues} queues"
        )
    # A topic without write queues still has read queues; a send that leaves the choice to the broker gets one
    # of them.
    return asked if asked >= 0 else services.runtime.random.randrange(topic.write_queue_nums or queues)


# Messages.


def _messages(
    services: Services, request: Command, header: SendRequest, target: _Target, channel: Channel
) -> tuple[Sequence[Message], bool]:
    """Return the messages to store, one unless it is a batch, and whether the producer waits."""
    properties = decode_properties(header.properties or "")
    is_half = half_messages.is_half(properties)
    if is_half or header.sys_flag & SYS_TRANSACTION_MASK:
        _check_transaction(services, header, properties)
    wait = properties.pop(WAIT, "true").lower() != "false"
    properties["CLUSTER"] = services.config.cluster
    # Java consumers of 5.x trace only a message that has these properties.
    properties.update(services.tracing_fields())
    if target.dead_letter_of is not None:
        for name in (DELAY, *TIMER_REQUESTS):
            properties.pop(name, None)
    common = Message(
        topic=target.topic.topic_name,
        body=request.body,
        properties=properties,
        queue_id=target.queue_id,
        flag=header.flag,
        sys_flag=header.sys_flag | (SYS_MULTI_TAGS if target.topic.topic_filter_type == _MULTI_TAG else 0),
        born_timestamp_ms=header.born_timestamp,
        born_host=channel.remote,
        store_host=services.address,
        reconsume_times=header.reconsume_times or 0,
    )
    if header.batch:
        return _unpacked(services, header, common), wait
    if is_half:
        return [_half(common)], wait
    at_once = properties.keys().isdisjoint(_DELAYS)
    return [common if at_once else _delayed(services, common)], wait


def _message_type(message: Message) -> str:
    """Return the type of a message as RocketMQ's metrics name it."""
    if message.topic == half_messages.HALF_TOPIC:
        return _TRANSACTION
    if message.topic in (SCHEDULE_TOPIC, timed_messages.TIMER_TOPIC):
        return "delay"
    return "fifo" if _SHARDING_KEY in message.properties else "normal"


def _half(common: Message) -> Message:
    half = half_messages.half(common)
    if not half_messages.has_room_for_copies(half):
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "the properties have no room for those of a check")
    return half


def _check_transaction(services: Services, header: SendRequest, properties: Mapping[str, str]) -> None:
    """Refuse transaction flags that do not belong to a half message, and half messages that cannot end.

    Raises:
        RefusedError: as above, or half messages are refused, or too many transactions are open.
    """
    flags = header.sys_flag & SYS_TRANSACTION_MASK
    if not half_messages.is_half(properties):
        if flags:
            raise RefusedError(ResponseCode.NO_PERMISSION, f"system flag {flags} without TRAN_MSG")
        return
    if services.config.reject_transactions:
        raise RefusedError(ResponseCode.NO_PERMISSION, "this broker refuses half messages")
    if flags not in (0, SYS_TRANSACTION_PREPARED):
        raise RefusedError(ResponseCode.NO_PERMISSION, f"system flag {flags} in a half message, 4 expected")
    if timed_messages.asked(properties):
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "a half message cannot ask for a time")
    if header.batch or header.topic.startswith(RETRY_PREFIX):
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "a half message in a batch or for a retry topic")
    for name in (half_messages.PRODUCER_GROUP, UNIQUE_KEY):
        if not properties.get(name):
            raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, f"a half message without {name}")
    if services.transactions.open_count >= services.config.transactions_open_max:
        remark = f"{services.transactions.open_count} transactions are open, which is the limit"
        raise RefusedError(ResponseCode.SYSTEM_BUSY, remark)


def _delayed(services: Services, common: Message) -> Message:
    """Return the message as it is stored: with a delay level or a time, in the queue where it waits.

    As in 5.x, a delay level counts more than a time, and a time that is over means at once.
    """
    message = scheduled_or_refused(services, common)
    asked = timed_messages.asked(common.properties)
    if timed_messages.RECALLED_KEY in common.properties:
        remark = f"{timed_messages.RECALLED_KEY}: a message is recalled by RECALL_MESSAGE"
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    if asked is None or message is not common:
        return message
    config, now_ms = services.config, services.store.now_ms()
    if not config.timers:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{asked}: timerWheelEnable is false")
    try:
        due_ms = timed_messages.asked_due_ms(common.properties, asked, now_ms)
    except ValueError as error:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
    if due_ms <= now_ms:
        return message
    if due_ms - now_ms > config.timer_delay_max_s * 1000:
        remark = (
            f"{asked} is {common.properties[asked][:40]}, at most {config.timer_delay_max_s} s are allowed"
        )
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    waiting = timed_messages.waiting(message, due_ms)
    if not timed_messages.has_room_for_copies(waiting):
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "the properties have no room for those of a copy")
    if services.timers.waiting_count >= config.timers_waiting_max:
        remark = f"{services.timers.waiting_count} messages wait for their time, which is the limit"
        raise RefusedError(ResponseCode.SYSTEM_BUSY, remark)
    return waiting


def _unpacked(services: Services, header: SendRequest, batch: Message) -> Batch:
    """Return the messages of a batch; a property of a message overrides that of the batch."""
    if header.topic.startswith(RETRY_PREFIX):
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "a batch cannot be sent to a retry topic")
    bytes_max = services.config.store.message_bytes_max
    if len(batch.body) > bytes_max:
        raise RefusedError(
            ResponseCode.MESSAGE_ILLEGAL, f"batch has {len(batch.body)} bytes, at most {bytes_max} expected"
        )
    try:
        parts = split_batch(batch.body, _BATCH_MESSAGES_MAX)
    except ValueError as error:
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
    common = {name: f"{name}{NAME_END}{value}" for name, value in batch.properties.items()}
    each = [{**common, **decode_pairs(text)} for _, text, _ in parts]
    for pairs in each:
        if not _UNUSUAL_IN_BATCH.isdisjoint(pairs):
            pairs.pop(WAIT, None)
            if _asks_for_delay(decode_properties(VALUE_END.join(pairs.values()))):
                raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "a message of a batch cannot be delayed")
    return Batch(batch, [body for body, _, _ in parts], each, [flag for _, _, flag in parts])


def _asks_for_delay(properties: Mapping[str, str]) -> bool:
    return properties.get(DELAY, "0") != "0" or timed_messages.asked(properties) is not None


def _report(services: Services, message: Message, wait: bool, result: PutResult) -> None:
    assert services.events is not None
    ok = result.status is PutStatus.PUT_OK
    services.events.emit(
        Kind.SEND_ACK,
        msg_id=message.properties.get(UNIQUE_KEY) or result.message_id,
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=result.queue_offset,
        commit_offset=result.commit_offset,
        status="SEND_OK" if ok else result.status.value,
        attrs={} if wait else {"wait": "false"},
    )
