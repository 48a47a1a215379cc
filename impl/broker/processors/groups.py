"""Requests of clients about themselves: heartbeats, unregistration, group members and queue locks.

See docs/reference/protocol/groups.md, "Client registration" and "Queue locks".
"""

from collections.abc import Iterable

from mqproof.impl.broker.requests.checks import require_group, require_sole_master
from mqproof.impl.broker.requests.sql_filters import require_filter, require_filter_type
from mqproof.impl.broker.services import Services, loop_ms
from mqproof.impl.broker.state.clients import Member
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    GROUPS_OF_CLIENT_MAX,
    ClientCheck,
    ConsumerIds,
    Heartbeat,
    LockedQueues,
    MessageQueue,
    QueueLocks,
)
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import ConsumerGroupRequest, UnregisterClientRequest
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.clock import now_ms


async def heartbeat(services: Services, request: Command, channel: Channel) -> Reply:
    """Record the client's groups and subscriptions; create the retry topic of each consumer group."""
    beat = java_json.read(Heartbeat, request.body)
    named = len(beat.consumer_data_set) + len(beat.producer_data_set)
    if named > GROUPS_OF_CLIENT_MAX or services.clients.membership_count(channel) > GROUPS_OF_CLIENT_MAX:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"a client can be in at most {GROUPS_OF_CLIENT_MAX} groups"
        )
    groups = [require_group(services, data.group_name, channel) for data in beat.consumer_data_set]
    await services.topics.ensure_all(
        {
            RETRY_PREFIX + group.group_name: group.retry_queue_nums
            for group in groups
            if group.retry_queue_nums > 0
        },
        channel,
    )
    if channel.is_open:
        if (reason := services.clients.refusal(channel, beat)) is not None:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, reason)
        member = Member(beat.client_id, request.language, request.version, loop_ms())
        changed = services.clients.heartbeat(channel, beat, member)
        for data in beat.consumer_data_set:
            if (group := services.clients.consumer_group(data.group_name)) is not None:
                services.announced.update(data.group_name, group.subscriptions, beat.client_id)
        notify(services, changed)
        if services.config.property_filter:
            for data in beat.consumer_data_set:
                services.filters.register(data.group_name, data.subscription_data_set, wall_ms(services))
    return request.answer(ResponseCode.SUCCESS)


def unregister(services: Services, request: Command, channel: Channel) -> Reply:
    """Remove the client from its groups."""
    header = headers.read(UnregisterClientRequest, request.fields)
    members_left(services, services.clients.unregister(channel, header.producer_group, header.consumer_group))
    return request.answer(ResponseCode.SUCCESS)


def consumer_ids(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Return the client ids of a group."""
    header = headers.read(ConsumerGroupRequest, request.fields)
    ids = services.clients.consumer_ids(header.consumer_group)
    if not ids:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"no consumer of group {header.consumer_group}")
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(ConsumerIds(ids), standard=True))


def check_client(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Check whether the broker supports the filter of the client's subscription."""
    check = java_json.read(ClientCheck, request.body)
    subscription = check.subscription_data
    if subscription is not None and require_filter_type(subscription.expression_type):
        require_filter(services, subscription.sub_string)
    return request.answer(ResponseCode.SUCCESS)


def lock_queues(services: Services, request: Command, channel: Channel) -> Reply:
    """Lock or renew the queues that no other client holds; return those that the client holds now.

    A slave does not know the locks at its master, and could lock a queue for a second client. It therefore
    refuses the request.
    """
    require_sole_master(services)
    asked = java_json.read(QueueLocks, request.body)
    require_group(services, asked.consumer_group, channel)
    queues = [queue for queue in asked.mq_set if _is_ours(services, queue)]
    held = services.locks.lock(asked.consumer_group, asked.client_id, queues, loop_ms())
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(LockedQueues(held), standard=True))


def unlock_queues(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001  # a processor's signature
    """Unlock queues that the client holds."""
    require_sole_master(services)
    asked = java_json.read(QueueLocks, request.body)
    services.locks.unlock(asked.consumer_group, asked.client_id, asked.mq_set)
    return request.answer(ResponseCode.SUCCESS)


def members_left(services: Services, changed: Iterable[str]) -> None:
    """Notify the remaining members of groups that members left."""
    for name in sorted(changed):
        if services.clients.consumer_group(name) is None:
            services.filters.group_left(name, wall_ms(services))
            services.announced.group_left(name)
            services.resets.drop(name)
    notify(services, changed)


def wall_ms(services: Services) -> int:
    return now_ms(services.runtime.clock)


def notify(services: Services, groups: Iterable[str]) -> None:
    """Notify the members of changed groups, so that they fetch the member list again."""
    for name in sorted(groups):
        group = services.groups.get(name)
        if group is not None and not group.notify_consumer_ids_changed_enable:
            continue
        fields = headers.write(ConsumerGroupRequest(name))
        for channel in services.clients.consumer_channels(name):
            # A client that does not read its connection fetches the list by itself after a while.
            if channel.takes:
                note = new_request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields, oneway=True)
                channel.send_oneway(note)


def _is_ours(services: Services, queue: MessageQueue) -> bool:
    """Return whether the queue exists on this broker; so a group has no more locks than queues."""
    topic = services.topics.get(queue.topic)
    return (
        queue.broker_name == services.config.name
        and topic is not None
        and 0 <= queue.queue_id < max(topic.read_queue_nums, topic.write_queue_nums)
    )
