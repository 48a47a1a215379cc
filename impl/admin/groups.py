"""Operations on consumer groups: create, change, delete, read their progress, and reset their offsets."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from mqproof.impl.admin.admin import MASTER_ID, Admin, address_of, read_body
from mqproof.impl.admin.brokers import status
from mqproof.impl.admin.topics import delete_topic, queue_of, topic_names
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.model import ClientError, MessageQueue, NoRouteError, RefusalError
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import (
    Connection,
    ConsumerConnection,
    ConsumeStats,
    ConsumeStatsList,
    ProducerConnection,
    ProducerInfo,
    ProducerTable,
    QueueOffsets,
    QueueProgress,
    RequestMode,
    RunningInfo,
    SubscriptionGroup,
    SubscriptionGroupList,
    SubscriptionGroups,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import IMPLEMENTATION_KEY, LANGUAGE
from mqproof.impl.remoting.headers import (
    AllConsumeStatsRequest,
    CloneOffsetRequest,
    ConsumerGroupRequest,
    ConsumerRequest,
    ConsumeStatsRequest,
    DeleteGroupRequest,
    ProducerGroupRequest,
    ResetOffsetRequest,
)
from mqproof.impl.runtime.network import Address

RETRY_PREFIX: Final = "%RETRY%"
DEAD_LETTER_PREFIX: Final = "%DLQ%"

_RESETS_ALL_QUEUES: Final = ("V3", "V4")
"""Versions of brokers that ignore the queue id of a reset, unless they report that they are mqproof."""

END: Final = -1
"""The time of a reset that means the end of each queue."""


class NoOffsetsError(ClientError):
    """No broker has offsets of the group."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a group."""

    queues: dict[MessageQueue, QueueProgress]
    """The progress in each queue, sorted by topic, broker and queue."""
    tps: float
    """Messages consumed per second, as the brokers measure it."""

    @property
    def behind(self) -> int:
        """The number of messages that the group has not consumed."""
        return sum(queue.broker_offset - queue.consumer_offset for queue in self.queues.values())


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The summary of a group: its members and its progress."""

    group: str
    connection: ConsumerConnection | None
    """The group's connected members; None if no member is connected."""
    progress: Progress | None
    """The group's progress; None if it has no offsets at any broker."""


async def update_group(admin: Admin, brokers: Sequence[Address], group: SubscriptionGroup) -> None:
    """Create the group at these brokers, or change it to these settings."""
    body = java_json.write(group, standard=True)
    for broker in brokers:
        await admin.ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


async def update_groups(admin: Admin, brokers: Sequence[Address], listed: list[SubscriptionGroup]) -> None:
    """Create groups at these brokers, of 5.x or ours, or change them, in one request for each broker."""
    body = java_json.write(SubscriptionGroupList(listed), standard=True)
    for broker in brokers:
        await admin.ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)


async def set_mode(admin: Admin, brokers: Sequence[Address], mode: RequestMode) -> None:
    """Set how a group receives the messages of a topic at these brokers, of 5.x or ours."""
    body = java_json.write(mode, standard=True)
    for broker in brokers:
        await admin.ask(broker, RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)


async def group_config(admin: Admin, group: str, cluster: str | None = None) -> dict[str, SubscriptionGroup]:
    """Return the settings of a group by broker name, from the masters that have it.

    The masters are those of a cluster, or all. Raises ClientError when none has it.
    """
    info = await admin.cluster_info()
    found: dict[str, SubscriptionGroup] = {}
    for name, data in sorted(info.broker_addr_table.items()):
        master = data.broker_addrs.get(MASTER_ID)
        if master is None or cluster not in (None, data.cluster):
            continue
        table = await settings(admin, address_of(master))
        if group in table:
            found[name] = table[group]
    if not found:
        raise ClientError(f"no master has the group {group}")
    return found


async def consume_stats_of(admin: Admin, broker: Address, *, order: bool) -> ConsumeStatsList:
    """Return the progress of all groups at one broker, of ordered topics or of the others."""
    header = AllConsumeStatsRequest(order)
    return read_body(ConsumeStatsList, await admin.ask(broker, RequestCode.GET_BROKER_CONSUME_STATS, header))


async def all_producers(admin: Admin, broker: Address) -> dict[str, list[ProducerInfo]]:
    """Return the producers that are connected to a broker, by group."""
    answer = await admin.ask(broker, RequestCode.GET_ALL_PRODUCER_INFO)
    return dict(sorted(read_body(ProducerTable, answer).data.items()))


async def delete_group(admin: Admin, brokers: Sequence[Address], group: str, *, offsets: bool) -> None:
    """Delete the group at these brokers, and its offsets if `offsets` is true."""
    header = DeleteGroupRequest(group, remove_offset=offsets, clean_offset=offsets)
    for broker in brokers:
        await admin.ask(broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)


async def delete_group_topics(admin: Admin, brokers: Sequence[Address], group: str, cluster: str) -> None:
    """Delete the group's retry and dead letter topics from a cluster."""
    for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
        await delete_topic(admin, brokers, prefix + group, cluster)


async def clone_offsets(admin: Admin, source: str, group: str, topic: str) -> list[Address]:
    """Set a group's offsets in a topic to those of another group. Returns the brokers that have the topic."""
    brokers = list((await admin.masters_of(topic)).values())
    header = CloneOffsetRequest(source, group, topic, offline=True)
    for broker in brokers:
        await admin.ask(broker, RequestCode.CLONE_GROUP_OFFSET, header)
    return brokers


async def connection(admin: Admin, group: str) -> ConsumerConnection | None:
    """Return the group's members from the first broker that has any, or None when none has."""
    for broker in (await _brokers(admin, group)).values():
        if found := await connection_at(admin, group, broker):
            return found
    return None


async def connection_at(admin: Admin, group: str, broker: Address) -> ConsumerConnection | None:
    """Return the group's members at one broker, or None when it has none."""
    try:
        header = ConsumerGroupRequest(group)
        answer = await admin.ask(broker, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
    except RefusalError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return None
    return read_body(ConsumerConnection, answer)


async def producers(admin: Admin, group: str, topic: str) -> list[Connection]:
    """Return the connected producers of the group, as the topic's masters report them."""
    found: dict[str, Connection] = {}
    for broker in (await admin.masters_of(topic)).values():
        header = ProducerGroupRequest(group)
        with suppress(RefusalError):  # none is connected to this one
            answer = await admin.ask(broker, RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
            connected = read_body(ProducerConnection, answer).connection_set
            found.update((each.client_id, each) for each in connected)
    return [found[name] for name in sorted(found)]


async def running(admin: Admin, group: str, client_id: str | None = None) -> dict[str, RunningInfo]:
    """Return what each member reads and holds, by client id, or that of one member.

    Members that refuse the request are left out.
    """
    found: dict[str, RunningInfo] = {}
    for broker in (await _brokers(admin, group)).values():
        connected = await connection_at(admin, group, broker)
        for member in connected.connection_set if connected else ():
            if member.client_id in found or client_id not in (None, member.client_id):
                continue
            header = ConsumerRequest(group, member.client_id, jstack_enable=False)
            with suppress(RefusalError):
                answer = await admin.ask(broker, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
                found[member.client_id] = read_body(RunningInfo, answer)
    return dict(sorted(found.items()))


async def progress(
    admin: Admin, group: str, topic: str | None = None, cluster: str | None = None
) -> Progress:
    """Return the group's progress in every queue it consumes, in one topic, or at one cluster's brokers.

    Raises NoOffsetsError when no broker has offsets of it.
    """
    queues = {}
    tps = 0.0
    brokers = await (admin.masters_of(group, cluster) if cluster else _brokers(admin, group, topic))
    for broker in brokers.values():
        header = ConsumeStatsRequest(group, topic)
        stats = read_body(ConsumeStats, await admin.ask(broker, RequestCode.GET_CONSUME_STATS, header))
        tps += stats.consume_tps
        queues.update({queue_of(key): found for key, found in stats.offset_table.items()})
    if not queues:
        raise NoOffsetsError(f"group {group} has no offsets" + (f" in topic {topic}" if topic else ""))
    return Progress(dict(sorted(queues.items())), tps)


async def owners(admin: Admin, group: str) -> dict[MessageQueue, str]:
    """Return the client id of the member that reads each queue.

    Members that refuse the request are left out.
    """
    found = {}
    for broker in (await _brokers(admin, group)).values():
        connected = await connection_at(admin, group, broker)
        for member in connected.connection_set if connected else ():
            header = ConsumerRequest(group, member.client_id, jstack_enable=False)
            with suppress(RefusalError):
                answer = await admin.ask(broker, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
                queues = read_body(RunningInfo, answer).mq_table
                found.update({queue_of(key): member.client_id for key in queues})
    return found


async def summaries(admin: Admin) -> list[GroupSummary]:
    """Return a summary of every group with a retry topic, that is, every group that ever had a member."""
    return [await summary(admin, group) for group in await active_groups(admin)]


async def active_groups(admin: Admin) -> list[str]:
    """Return the groups that ever had a member, sorted."""
    names = await topic_names(admin)
    return [name.removeprefix(RETRY_PREFIX) for name in names if name.startswith(RETRY_PREFIX)]


async def summary(admin: Admin, group: str) -> GroupSummary:
    """Return the summary of a group that ever had a member. Raises NoRouteError for another one."""
    try:
        how_far = await progress(admin, group)
    except (NoOffsetsError, NoRouteError, RefusalError):
        how_far = None
    return GroupSummary(group, await connection(admin, group), how_far)


async def settings(admin: Admin, broker: Address) -> dict[str, SubscriptionGroup]:
    """Return the settings of each group that a broker has, by name."""
    answer = await admin.ask(broker, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return read_body(SubscriptionGroups, answer).subscription_group_table


async def reset_offsets(
    admin: Admin,
    group: str,
    topic: str,
    timestamp_ms: int,
    *,
    force: bool = True,
    cpp: bool = False,
    cluster: str | None = None,
    broker: Address | None = None,
) -> dict[MessageQueue, int]:
    """Reset the group to the messages stored from a time on, or to the end. Returns its new offsets.

    The reset happens at every broker that has the topic, at those of a cluster, or at one broker. Without
    `force` no queue moves forward. The broker notifies connected members; `cpp` selects the form for C++
    members. If the group has no members, the offsets are changed at the broker. Raises ClientError when a
    broker can do neither.
    """
    offsets = {}
    header = ResetOffsetRequest(topic, group, timestamp_ms, force)
    for name, address in (await _reset_where(admin, topic, cluster, broker)).items():
        try:
            answer = await admin.ask(
                address,
                RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
                header,
                language="CPP" if cpp else LANGUAGE,
            )
        except RefusalError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            offsets.update(await _reset_at_broker(admin, group, topic, name, timestamp_ms, force=force))
        else:
            table = read_body(QueueOffsets, answer).offset_table
            offsets.update({queue_of(key): offset for key, offset in table.items()})
    return dict(sorted(offsets.items()))


async def reset_queue(
    admin: Admin,
    group: str,
    topic: str,
    broker: Address,
    queue_id: int,
    *,
    timestamp_ms: int,
    offset: int | None,
) -> dict[MessageQueue, int]:
    """Reset the group in one queue of a broker to an offset, or else to a time. Returns its new offset.

    Raises ClientError when the queue has no such offset. Also raises it when the group has members and the
    broker, of 4.9 or before, would reset all their queues.
    """
    (name,) = await _reset_where(admin, topic, None, broker)
    queue = MessageQueue(topic, name, queue_id)
    calls = GroupRequests(admin.session, group)
    if offset is None and timestamp_ms == END:
        offset = await calls.max_offset(queue)
    elif offset is None:
        offset = await calls.search_offset(queue, timestamp_ms)
    elif offset > (end := await calls.max_offset(queue)):
        raise ClientError(f"{queue} ends at {end}, offset {offset} is beyond that")
    reported = await status(admin, broker)
    version = reported.get("brokerVersionDesc", "")
    sets_all = version.startswith(_RESETS_ALL_QUEUES) and IMPLEMENTATION_KEY not in reported
    if sets_all and await connection_at(admin, group, broker):
        raise ClientError(
            f"group {group} has members, a broker of {version} resets all its queues: stop the members first"
        )
    await calls.commit(queue, offset)
    if not sets_all:  # a 5.x broker that reset the group before keeps that offset, whatever is committed
        header = ResetOffsetRequest(topic, group, timestamp_ms, True, queue_id, offset)
        await admin.ask(broker, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    return {queue: offset}


async def _reset_where(
    admin: Admin, topic: str, cluster: str | None, broker: Address | None
) -> dict[str, Address]:
    if broker is None:
        return await admin.masters_of(topic, cluster)
    names = await admin.names_at([broker])
    if not names:
        raise ClientError(f"the name server knows no broker at {broker}")
    return {names[0]: broker}


async def _reset_at_broker(
    admin: Admin, group: str, topic: str, broker_name: str, timestamp_ms: int, *, force: bool
) -> dict[MessageQueue, int]:
    calls = GroupRequests(admin.session, group)
    known = (await progress(admin, group, topic)).queues
    offsets = {}
    for queue, found in known.items():
        if queue.broker_name != broker_name:
            continue
        at_end = timestamp_ms == END
        target = found.broker_offset if at_end else await calls.search_offset(queue, timestamp_ms)
        if not force:
            target = min(target, found.consumer_offset)
        await calls.commit(queue, target)
        offsets[queue] = target
    return offsets


async def _brokers(admin: Admin, group: str, topic: str | None = None) -> dict[str, Address]:
    """Return the brokers that have the group: those of its retry topic, and those of the requested topic."""
    brokers = {}
    for name in (RETRY_PREFIX + group, topic):
        if name is not None:
            with suppress(NoRouteError):
                brokers.update(await admin.masters_of(name))
    if not brokers:
        raise NoRouteError(f"the name server knows no group {group}")
    return brokers
