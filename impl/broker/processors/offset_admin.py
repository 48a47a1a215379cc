"""Administration and display of consumer offsets.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from mqproof.impl.broker.processors.consumer_calls import NOTIFIABLE_VERSION
from mqproof.impl.broker.processors.queries import offset_at_time
from mqproof.impl.broker.requests.administrative_events import reset_at_broker
from mqproof.impl.broker.requests.checks import require_group, require_topic
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    ConsumeStats,
    GroupList,
    ListedOffset,
    ListedOffsets,
    MessageQueue,
    QueueExtent,
    QueueOffsets,
    QueueProgress,
    TimeSpan,
    TimeSpans,
    TopicStats,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import (
    CloneOffsetRequest,
    ConsumeStatsRequest,
    ResetOffsetRequest,
    TopicGroupRequest,
    TopicRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import upkeep

_TO_THE_END: Final = -1
_ALL_QUEUES: Final = -1
_NEVER: Final = -1
"""The store time of a message that does not exist."""
_LISTS_ONLY: Final = "CPP"
"""Clients in this language receive tables as lists, because they cannot read objects as keys."""


# Changes.


def reset_offsets(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Notify a group's members to continue from a topic's offsets at a time. The members commit them.

    If the request names a single queue, with a time or an offset, the broker commits the offset too.
    """
    header = headers.read(ResetOffsetRequest, request.fields)
    topic = services.topics.get(header.topic)
    if topic is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"topic {header.topic} does not exist")
    queue_ids: Sequence[int] = range(topic.write_queue_nums)
    if is_of_one := header.queue_id is not None and header.queue_id != _ALL_QUEUES:
        if header.queue_id not in queue_ids:
            remark = f"topic {header.topic} has no queue {header.queue_id}"
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
        queue_ids = [header.queue_id]
    table = {queue_id: _reset_offset(services, header, queue_id) for queue_id in queue_ids}
    queues = [
        ListedOffset(services.config.name, offset, queue_id, header.topic)
        for queue_id, offset in table.items()
    ]
    answer = java_json.write(
        QueueOffsets({_key(services, header.topic, queue.queue_id): queue.offset for queue in queues})
    )
    sent_body = java_json.write(ListedOffsets(queues)) if request.language == _LISTS_ONLY else answer
    if is_of_one:  # tools that name a queue expect the broker to commit, whether or not members are connected
        before = services.offsets.of_group(header.group, header.topic)
        services.offsets.commit(header.group, header.topic, queues[0].queue_id, queues[0].offset)
        reset_at_broker(services, header.group, header.topic, before)
    if not is_of_one or services.clients.consumer_group(header.group) is not None:
        _notify_members(services, header, sent_body)
        if services.events is not None:
            services.resets.expect(header.group, header.topic, table)
    return request.answer(ResponseCode.SUCCESS, body=answer)


def clone_offsets(services: Services, request: Command, channel: Channel) -> Reply:
    """Set a group's offsets to those of another group, in one topic or in all."""
    header = headers.read(CloneOffsetRequest, request.fields)
    require_group(services, header.dest_group, channel)
    topics = [header.topic] if header.topic else services.offsets.topics_of(header.src_group)
    for topic in topics:
        if services.topics.get(topic) is not None:
            before = services.offsets.of_group(header.dest_group, topic)
            services.offsets.clone(header.src_group, header.dest_group, topic)
            reset_at_broker(services, header.dest_group, topic, before)
    return request.answer(ResponseCode.SUCCESS)


def _reset_offset(services: Services, header: ResetOffsetRequest, queue_id: int) -> int:
    if header.queue_id == queue_id and header.offset is not None and header.offset >= 0:
        end = services.store.max_offset(header.topic, queue_id)
        if header.offset > end:
            remark = (
                f"queue {queue_id} of {header.topic} ends at {end}, offset {header.offset} is beyond that"
            )
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
        return header.offset
    committed = services.offsets.query(header.group, header.topic, queue_id)
    if committed is None:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR,
            f"group {header.group} has no offset in queue {queue_id} of {header.topic}",
        )
    if header.timestamp == _TO_THE_END:
        target = services.store.max_offset(header.topic, queue_id)
    else:
        target = offset_at_time(services, header.topic, queue_id, header.timestamp)
    return target if header.is_force else min(target, committed)


def _notify_members(services: Services, header: ResetOffsetRequest, body: bytes) -> None:
    group = services.clients.consumer_group(header.group)
    if group is None:
        raise RefusedError(
            ResponseCode.CONSUMER_NOT_ONLINE, f"no consumer of group {header.group} is connected"
        )
    for member in group.members.values():
        if member.version < NOTIFIABLE_VERSION:
            raise RefusedError(
                ResponseCode.SYSTEM_ERROR, f"consumer {member.client_id} is too old for this request"
            )
    fields = headers.write(header)
    for channel in group.members:
        channel.send_oneway(new_request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, body, oneway=True))


# Views.


def all_offsets(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return every committed offset."""
    return request.answer(ResponseCode.SUCCESS, body=services.offsets.answer())


async def consume_stats(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return a group's offsets and the ends of the queues, in one topic or in all where it has offsets."""
    header = headers.read(ConsumeStatsRequest, request.fields)
    topics = [header.topic] if header.topic else services.offsets.topics_of(header.consumer_group)
    table: dict[ObjectKey, QueueProgress] = {}
    rate = 0.0
    for topic in topics:
        stats = group_progress(services, header.consumer_group, topic)
        table.update(stats.offset_table)
        rate += stats.consume_tps
        await asyncio.sleep(0)  # there may be tens of thousands of topics
    written = await services.runtime.offload(lambda: java_json.write(ConsumeStats(rate, table)))
    return request.answer(ResponseCode.SUCCESS, body=written)


def group_progress(services: Services, group_name: str, topic: str) -> ConsumeStats:
    """Return a group's progress in one topic; without queues if it is connected and does not subscribe."""
    rate = services.pull_progress.rate(topic, group_name, upkeep.now_s())
    group = services.clients.consumer_group(group_name)
    if group is not None and topic not in group.subscriptions:
        return ConsumeStats(rate)
    return ConsumeStats(
        rate,
        {
            _key(services, topic, queue_id): _progress(services, group_name, topic, queue_id)
            for queue_id in _read_queues(services, topic)
        },
    )


def topic_stats(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the first and last offset of each queue of a topic."""
    header = headers.read(TopicRequest, request.fields)
    topic = require_topic(services, header.topic)
    table = {}
    for queue_id in range(topic.write_queue_nums):
        end = services.store.max_offset(header.topic, queue_id)
        table[_key(services, header.topic, queue_id)] = QueueExtent(
            last_update_timestamp=services.store.store_time_ms(header.topic, queue_id, end - 1) or 0,
            max_offset=end,
            min_offset=services.store.min_offset(header.topic, queue_id),
        )
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(TopicStats(table)))


def groups_of_topic(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the groups with offsets in a topic, and those whose members subscribe to it."""
    header = headers.read(TopicRequest, request.fields)
    groups = {*services.offsets.groups_of(header.topic), *services.clients.groups_of_topic(header.topic)}
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(GroupList(sorted(groups))))


def time_spans(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return, for each queue of a topic, the store times of its first, last and last consumed message."""
    header = headers.read(TopicGroupRequest, request.fields)
    require_topic(services, header.topic)
    spans = [
        _time_span(services, header.group, header.topic, queue_id)
        for queue_id in _read_queues(services, header.topic)
    ]
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(TimeSpans(spans)))


def _progress(services: Services, group: str, topic: str, queue_id: int) -> QueueProgress:
    consumed = max(0, services.offsets.query(group, topic, queue_id) or 0)
    return QueueProgress(
        broker_offset=services.store.max_offset(topic, queue_id),
        consumer_offset=consumed,
        last_timestamp=services.store.store_time_ms(topic, queue_id, consumed - 1) or 0,
        pull_offset=max(consumed, services.pull_progress.end(topic, group, queue_id)),
    )


def _time_span(services: Services, group: str, topic: str, queue_id: int) -> TimeSpan:
    begin, end = services.store.min_offset(topic, queue_id), services.store.max_offset(topic, queue_id)
    next_offset = services.offsets.query(group, topic, queue_id) or 0

    def stored_ms(offset: int) -> int:
        found = services.store.store_time_ms(topic, queue_id, offset)
        return _NEVER if found is None else found

    waiting_since_ms = stored_ms(next_offset)
    return TimeSpan(
        consume_time_stamp=stored_ms(max(begin, next_offset - 1)),
        delay_time=0 if waiting_since_ms == _NEVER else max(0, services.store.now_ms() - waiting_since_ms),
        max_time_stamp=stored_ms(end - 1),
        message_queue=MessageQueue(services.config.name, queue_id, topic),
        min_time_stamp=stored_ms(begin),
    )


def _read_queues(services: Services, topic_name: str) -> Iterable[int]:
    topic = services.topics.get(topic_name)
    return range(topic.read_queue_nums) if topic else ()


def _key(services: Services, topic: str, queue_id: int) -> ObjectKey:
    return ObjectKey(MessageQueue(services.config.name, queue_id, topic))


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: reset_offsets,
    RequestCode.CLONE_GROUP_OFFSET: clone_offsets,
    RequestCode.GET_ALL_CONSUMER_OFFSET: all_offsets,
    RequestCode.GET_CONSUME_STATS: consume_stats,
    RequestCode.GET_TOPIC_STATS_INFO: topic_stats,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_topic,
    RequestCode.QUERY_CONSUME_TIME_SPAN: time_spans,
}
