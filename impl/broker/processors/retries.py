"""Retries: messages that were not consumed go to the group's retry topic, and finally to its dead letters.

See docs/reference/protocol/retries-and-delays.md, "Retries".
"""

from typing import Final

from mqproof.impl.broker.half_messages import HALF_TOPIC, OPERATION_TOPIC
from mqproof.impl.broker.requests.checks import (
    require_group,
    require_master,
    require_writable_broker,
    scheduled_or_refused,
)
from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.topics import DEAD_LETTER_PREFIX
from mqproof.impl.broker.timed_messages import TIMER_TOPIC
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import PERM_WRITE, SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import SendBackRequest
from mqproof.impl.remoting.message import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_PREFIX,
    RETRY_TOPIC,
    WAIT,
    Message,
    StoredMessage,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.files import record
from mqproof.impl.store.results import STORED, PutStatus
from mqproof.spec.events import Kind

_FIRST_RETRY_LEVEL: Final = 3
_NOT_CONSUMED: Final = frozenset({HALF_TOPIC, OPERATION_TOPIC, TIMER_TOPIC})
"""A retry would make messages of these topics visible."""
_STORED_WELL: Final = STORED - {PutStatus.FLUSH_DISK_TIMEOUT}


async def send_back(services: Services, request: Command, channel: Channel) -> Reply:
    """Store the message again, for a later retry or as a dead letter.

    Answer success only when it is safely stored.
    """
    header = headers.read(SendBackRequest, request.fields)
    group = require_group(services, header.group, channel)
    require_writable_broker(services)
    require_master(services)
    if group.retry_queue_nums <= 0:
        return request.answer(ResponseCode.SUCCESS)  # the group allows no retries: the message is dropped
    retry_topic = await services.topics.ensure(
        RETRY_PREFIX + header.group, group.retry_queue_nums, by=channel
    )
    if not retry_topic.perm & PERM_WRITE or not retry_topic.write_queue_nums:
        raise RefusedError(
            ResponseCode.NO_PERMISSION, f"topic {retry_topic.topic_name} has no write permission"
        )
    original = _find(services, header.offset)
    if original.message.topic in _NOT_CONSUMED:
        remark = f"the message at {header.offset} is of {original.message.topic}, and not visible"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)
    if (
        is_given_up(original.message.reconsume_times, header.max_reconsume_times, group)
        or header.delay_level < 0
    ):
        topic, level = await dead_letter_topic(services, header.group, channel), 0
    else:
        level = header.delay_level or _FIRST_RETRY_LEVEL + original.message.reconsume_times
        topic = retry_topic
    message = scheduled_or_refused(services, _again(services, original, topic, level))
    # The consumer commits the original after a success, so the copy must be as durable as any other message
    # by then. A late slave is not a reason to refuse: the consumer would send the message back repeatedly.
    result = await services.store.put(message)
    if result.status not in _STORED_WELL:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{result.status.value}: {result.reason}")
    if level == 0:
        topic_name = original.message.properties.get(RETRY_TOPIC, original.message.topic)
        services.statistics.traffic.dead_letter(topic_name, header.group)
    _emit_retry(services, header.group, original, level)
    return request.answer(ResponseCode.SUCCESS)


def is_given_up(reconsume_times: int, asked_max: int | None, group: SubscriptionGroup) -> bool:
    """Return whether a message was retried often enough; the request's maximum overrides the group's."""
    return reconsume_times >= (group.retry_max_times if asked_max is None else asked_max)


async def dead_letter_topic(services: Services, group: str, channel: Channel) -> TopicConfig:
    """Return the group's topic for messages that it could not consume.

    Raises RefusedError, OSError as `ensure`.
    """
    return await services.topics.ensure(DEAD_LETTER_PREFIX + group, 1, by=channel)


def _find(services: Services, commit_offset: int) -> StoredMessage:
    data = services.store.record_at(commit_offset)
    if data is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"there is no message at commit offset {commit_offset}")
    return record.decode(data, commit_offset)


def _again(services: Services, original: StoredMessage, topic: TopicConfig, level: int) -> Message:
    """Return the message to store again; level 0 means no delay."""
    old = original.message
    properties = {RETRY_TOPIC: old.topic, ORIGIN_MESSAGE_ID: original.offset_message_id, **old.properties}
    properties.pop(DELAY, None)
    if level:
        properties[DELAY] = str(level)
    properties[WAIT] = "false"
    return Message(
        topic=topic.topic_name,
        body=old.body,
        properties=properties,
        queue_id=services.runtime.random.randrange(topic.write_queue_nums),
        flag=old.flag,
        sys_flag=old.sys_flag,
        born_timestamp_ms=old.born_timestamp_ms,
        born_host=old.born_host,
        store_host=services.address,
        reconsume_times=old.reconsume_times + 1,
    )


def _emit_retry(services: Services, group: str, original: StoredMessage, level: int) -> None:
    if services.events is not None:
        services.events.emit(
            Kind.RETRY if level else Kind.DEAD_LETTER,
            msg_id=original.message_id,
            topic=original.message.topic,
            queue_id=original.message.queue_id,
            queue_offset=original.queue_offset,
            group=group,
        )
