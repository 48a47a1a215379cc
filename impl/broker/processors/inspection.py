"""Views for administrators: queue entries, subscriptions, counters, and the progress of all groups.

See docs/reference/protocol/administration.md, "Statistics of a broker".
"""

import asyncio
from typing import Final

from mqproof.impl.broker.processors.offset_admin import group_progress
from mqproof.impl.broker.services import Processor, Services
from mqproof.impl.broker.state.rolling_counts import Counted
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    BrokerStats,
    ConsumeStats,
    ConsumeStatsList,
    CorrectionOffsets,
    GroupSubscription,
    QueueEntries,
    QueueEntry,
    StatsWindow,
    TopicList,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import (
    AllConsumeStatsRequest,
    CorrectionRequest,
    GroupRequest,
    GroupTopicRequest,
    QueueEntriesRequest,
    StatsRequest,
)
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime import upkeep

_ENTRIES_MAX: Final = 1024


def queue_entries(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the units of a consume queue from an offset on, and a group's subscription to the topic."""
    header = headers.read(QueueEntriesRequest, request.fields)
    store, topic, queue_id = services.store, header.topic, header.queue_id
    begin, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    if begin == end:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"queue {queue_id} of topic {topic} has no entries")
    if not begin <= header.index < end:
        remark = f"queue {queue_id} of topic {topic} has entries from {begin} to {end - 1}"
        return request.answer(ResponseCode.SUCCESS, remark=remark)
    count = min(max(header.count, 0), _ENTRIES_MAX, end - header.index)
    name = header.consumer_group or ""
    group = services.clients.consumer_group(name)
    body = QueueEntries(
        filter_data=None if group else f"{name}@{topic} is not online",
        max_queue_index=end,
        min_queue_index=begin,
        queue_data=[
            QueueEntry(False, unit.commit_offset, unit.size, unit.tags_code)
            for unit in store.units(topic, queue_id, header.index, count)
        ],
        subscription_data=group.subscriptions.get(topic) if group else None,
    )
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(body))


def topics_of_group(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the topics in which a group has offsets."""
    header = headers.read(GroupRequest, request.fields)
    topics = TopicList(str(services.address), sorted(services.offsets.topics_of(header.group)))
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(topics))


def subscription(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the subscription of a connected group to a topic."""
    header = headers.read(GroupTopicRequest, request.fields)
    group = services.clients.consumer_group(header.group)
    found = group.subscriptions.get(header.topic or "") if group else None
    body = GroupSubscription(header.group, found, header.topic)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(body))


def correction_offsets(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return, for each queue of a topic, the lowest offset of all groups not excluded by the request."""
    header = headers.read(CorrectionRequest, request.fields)
    left_out = {name.strip() for name in (header.filter_groups or "").split(",")}
    least: dict[int, int] = {}
    for group in services.offsets.groups_of(header.topic):
        if group not in left_out:
            for queue_id, offset in services.offsets.of_group(group, header.topic).items():
                least[queue_id] = min(offset, least.get(queue_id, offset))
    body = CorrectionOffsets(dict(sorted(least.items())))
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(body))


async def all_consume_stats(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the progress of every group in each topic where it has offsets."""
    header = headers.read(AllConsumeStatsRequest, request.fields)
    listed = []
    behind = 0
    for group in services.groups.snapshot().subscription_group_table:
        stats: list[ConsumeStats] = []
        for topic in services.offsets.topics_of(group):
            config = services.topics.get(topic)
            if config is None or config.order != header.is_order:
                continue
            await asyncio.sleep(0)  # there may be tens of thousands of groups and topics
            found = group_progress(services, group, topic)
            if found.offset_table:
                stats.append(found)
                behind += sum(
                    each.broker_offset - each.consumer_offset for each in found.offset_table.values()
                )
        listed.append({group: stats})
    body = ConsumeStatsList(str(services.address), listed, behind)
    written = await services.runtime.offload(lambda: java_json.write(body))
    return request.answer(ResponseCode.SUCCESS, body=written)


def statistics(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the counts under a name in the last minute, hour and day."""
    header = headers.read(StatsRequest, request.fields)
    counts = services.statistics.counts
    windows = counts.windows(header.stats_name, header.stats_key, upkeep.now_s())
    if windows is None:
        remark = f"nothing was counted under {header.stats_name} {header.stats_key}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    minute, hour, day = map(_shown, windows)
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(BrokerStats(day, hour, minute)))


def _shown(counted: Counted) -> StatsWindow:
    return StatsWindow(
        avgpt=counted.sum / counted.times if counted.times else 0.0,
        sum=counted.sum,
        tps=counted.sum / counted.elapsed_s if counted.elapsed_s else 0.0,
    )


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.QUERY_CONSUME_QUEUE: queue_entries,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: subscription,
    RequestCode.QUERY_CORRECTION_OFFSET: correction_offsets,
    RequestCode.GET_BROKER_CONSUME_STATS: all_consume_stats,
    RequestCode.VIEW_BROKER_STATS_DATA: statistics,
}
