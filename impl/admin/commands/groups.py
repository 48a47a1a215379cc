"""Commands about consumer groups."""

from typing import Annotated, Any, TypeVar

import msgspec
import typer
from msgspec import UNSET, UnsetType

from mqproof.impl.admin import groups, list_files, tables
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import (
    BROKER_REQUIRED,
    AtCluster,
    Broker,
    BrokerOnly,
    Cluster,
    Group,
    Topic,
    count,
    flag,
    list_file,
    parsed,
    text,
    when,
)
from mqproof.impl.admin.run import REFUSED, WRONG_USE, Site, fail, perform, require_one, say, show, targets
from mqproof.impl.remoting.bodies import RequestMode, SubscriptionGroup

T = TypeVar("T")


def _given(value: T | None) -> T | UnsetType:
    """Return the value, or UNSET to omit a field that only 5.x has."""
    return UNSET if value is None else value


def _policy(value: str) -> dict[str, Any]:
    try:
        policy = msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"{value!r}, a JSON object expected: {error}") from None
    return policy


def changes_of_attributes(value: str) -> dict[str, str]:
    """Parse `+A=B,-C` into the mapping that 5.x expects in a body. The signs are part of the names."""
    changes = {}
    for part in value.split(","):
        name, _, text = part.partition("=")
        if name[:1] not in ("+", "-") or not name[1:]:
            raise ValueError(f"{part!r}, +NAME=VALUE or -NAME expected")
        changes[name] = text
    return changes


_Consumes = Annotated[Any, flag("s", "consumeEnable", "Whether the group may consume.")]
_FromMin = Annotated[
    Any, flag("m", "consumeFromMinEnable", "Whether a new group starts at the first message.")
]
_Broadcasts = Annotated[
    Any, flag("d", "consumeBroadcastEnable", "Whether the group may consume in broadcast mode.")
]
_RetryQueues = Annotated[int, count("q", "retryQueueNums", "The number of queues of the retry topic.", 0)]
_RetryMax = Annotated[
    int, count("r", "retryMaxTimes", "The number of redeliveries before a message becomes a dead letter.", -1)
]
_ReadsFrom = Annotated[int, count("i", "brokerId", "The id of the broker that the group reads from.", 0)]
_ReadsFromWhenSlow = Annotated[
    int,
    count(
        "w",
        "whichBrokerWhenConsumeSlowly",
        "The id of the broker to read from when the group lags far behind.",
        0,
    ),
]
_Notifies = Annotated[
    Any, flag("a", "notifyConsumerIdsChanged", "Whether members are notified when a member joins or leaves.")
]
_Orderly = Annotated[
    Any, flag("o", "consumeMessageOrderly", "5.x only: whether the group consumes in order.")
]
_RetryPolicy = Annotated[
    Any,
    typer.Option(
        "-p",
        "--groupRetryPolicy",
        parser=parsed("p", _policy),
        metavar="JSON",
        help='5.x only, for example \'{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}}\'.',
    ),
]
_Attributes = Annotated[
    Any,
    typer.Option(
        "--attributes",
        parser=parsed("-attributes", changes_of_attributes),
        metavar="+A=B,-C",
        help="Attributes, which only brokers of 5.x support.",
    ),
]


def _mode(value: str) -> str:
    if value not in ("PULL", "POP"):
        raise ValueError(f"{value!r}, PULL or POP expected")
    return value


_MODE = typer.Option("-m", "--mode", parser=parsed("m", _mode), metavar="PULL|POP", help="The mode.")


def update_sub_group(
    site: Site,
    group: Group,
    broker: Broker = None,
    cluster: Cluster = None,
    consume: _Consumes = "true",
    from_min: _FromMin = "false",
    broadcast: _Broadcasts = "false",
    retry_queues: _RetryQueues = 1,
    retry_max: _RetryMax = 16,
    broker_id: _ReadsFrom = 0,
    slow_id: _ReadsFromWhenSlow = 1,
    notify: _Notifies = "true",
    orderly: _Orderly = None,
    retry_policy: _RetryPolicy = None,
    attributes: _Attributes = None,
) -> None:
    """Create a consumer group, or change it.

    At one broker (-b) or at all masters of a cluster (-c). Options not given have mqadmin's defaults.

    \b
    Example: mqproof admin updateSubGroup -n 127.0.0.1:9876 -c DefaultCluster -g G -r 3
    """
    require_one(broker, cluster)
    config = SubscriptionGroup(
        broker_id=broker_id,
        consume_broadcast_enable=broadcast,
        consume_enable=consume,
        consume_from_min_enable=from_min,
        group_name=group,
        notify_consumer_ids_changed_enable=notify,
        retry_max_times=retry_max,
        retry_queue_nums=retry_queues,
        which_broker_when_consume_slowly=slow_id,
        attributes=_given(attributes),
        consume_message_orderly=_given(orderly),
        group_retry_policy=_given(retry_policy),
    )

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await groups.update_group(admin, brokers, config)
        for each in brokers:
            say(f"group {group} at {each}: at most {retry_max} retries, {retry_queues} retry queues")

    perform(site, work)


def update_sub_group_list(
    site: Site,
    groups_of: Annotated[Any, list_file(list_files.read_groups)],
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Create consumer groups, or change them, from a file.

    The file has a JSON list of groups, or is one that exportMetadata wrote. At one broker (-b) or at all
    masters of a cluster (-c), of 5.x or ours.

    \b
    Example: mqproof admin updateSubGroupList -n 127.0.0.1:9876 -c DefaultCluster -f groups.json
    A file:  [{"groupName": "G", "retryMaxTimes": 3}]
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await groups.update_groups(admin, brokers, groups_of)
        for each in brokers:
            say(f"groups created or changed at {each}: {len(groups_of)}")

    perform(site, work)


def set_consume_mode(
    site: Site,
    group: Group,
    topic: Annotated[str, text("t", "topicName", "NAME", "The topic.")],
    mode: Annotated[Any, _MODE],
    share: Annotated[
        int, count("q", "popShareQueueNum", "With POP: the number of members that share a queue.", least=0)
    ] = 0,
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Set how a group receives the messages of a topic: by pulls, or by pops.

    At one broker (-b) or at all masters of a cluster (-c), of 5.x or ours. Our broker refuses POP.

    \b
    Example: mqproof admin setConsumeMode -n 127.0.0.1:9876 -c DefaultCluster -g G -t T -m PULL
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await groups.set_mode(admin, brokers, RequestMode(group, topic, mode, share))
        for each in brokers:
            say(f"{each}: group {group} receives topic {topic} by {mode}")

    perform(site, work)


def get_consumer_config(
    site: Site,
    group: Group,
    cluster: Annotated[
        str | None, text("c", "clusterName", "NAME", "Only the masters of this cluster.")
    ] = None,
) -> None:
    """Show the settings of a consumer group at each master that has it.

    \b
    Example: mqproof admin getConsumerConfig -n 127.0.0.1:9876 -g G
    """

    async def work(admin: Admin) -> None:
        found = await groups.group_config(admin, group, cluster)
        show(tables.group_settings(found))

    perform(site, work)


def delete_sub_group(
    site: Site,
    group: Group,
    broker: Broker = None,
    cluster: Cluster = None,
    offsets: Annotated[
        Any, flag("r", "removeOffset", "Whether to delete the offsets of the group too.")
    ] = "false",
) -> None:
    """Delete a consumer group.

    At one broker (-b), or at all masters of a cluster (-c) with its retry and dead-letter topics.

    \b
    Example: mqproof admin deleteSubGroup -n 127.0.0.1:9876 -c DefaultCluster -g G -r true
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await groups.delete_group(admin, brokers, group, offsets=offsets)
        if cluster is not None:
            await groups.delete_group_topics(admin, brokers, group, cluster)
        say(f"group {group} is deleted at {', '.join(map(str, brokers))}")

    perform(site, work)


def consumer_progress(
    site: Site,
    group: Annotated[
        str | None, text("g", "groupName", "NAME", "Show only this group, queue by queue.")
    ] = None,
    topic: Annotated[str | None, text("t", "topicName", "NAME", "Show only this topic.")] = None,
    clients: Annotated[
        Any, flag("s", "showClientIP", "Whether to show the member that each queue is assigned to.")
    ] = "false",
    cluster: AtCluster = None,
) -> None:
    """Show the progress of consumer groups.

    \b
    Example: mqproof admin consumerProgress -n 127.0.0.1:9876 -g G
    """
    if group is None and (topic is not None or clients or cluster is not None):
        fail("-t, -s and -c need -g", WRONG_USE)

    async def work(admin: Admin) -> None:
        if group is None:
            show(tables.groups(await groups.summaries(admin)))
            return
        found = await groups.progress(admin, group, topic, cluster)
        show(tables.progress(found, await groups.owners(admin, group) if clients else None))
        say(f"\n{found.tps:.1f} messages a second, {found.behind} behind")

    perform(site, work)


def broker_consume_stats(
    site: Site,
    broker: Annotated[Any, BROKER_REQUIRED],
    behind_min: Annotated[int, count("l", "level", "Only queues at least N messages behind.", least=0)] = 0,
    order: Annotated[
        Any, flag("o", "order", "Whether to show ordered topics instead of the others.")
    ] = "false",
) -> None:
    """Show the progress of all groups at one broker.

    \b
    Example: mqproof admin brokerConsumeStats -n 127.0.0.1:9876 -b 127.0.0.1:10911 -l 1
    """

    async def work(admin: Admin) -> None:
        stats = await groups.consume_stats_of(admin, broker, order=order)
        show(tables.consume_stats(stats, behind_min))
        say(f"\n{stats.total_diff} messages behind in all")

    perform(site, work)


def reset_offset_by_time(
    site: Site,
    group: Annotated[str, text("g", "group", "NAME", "The consumer group.")],
    topic: Topic,
    timestamp: Annotated[
        Any, when("s", "timestamp", "The time: now, milliseconds or yyyy-MM-dd#HH:mm:ss:SSS.")
    ],
    force: Annotated[
        Any, flag("f", "force", "Whether to move forward too, past messages that are not consumed.")
    ] = "true",
    cpp: Annotated[
        bool, typer.Option("-c", "--cplus", help="The clients of the group are C++ clients.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="NAME", help="Reset only at the brokers of this cluster."),
    ] = None,
    broker: BrokerOnly = None,
    queue: Annotated[int | None, count("q", "queue", "With -b: reset only this queue.", 0)] = None,
    offset: Annotated[
        int | None, count("o", "offset", "With -q: reset to this offset instead of a time.", 0)
    ] = None,
) -> None:
    """Reset the offsets of a group to a time.

    The group continues with the messages stored from that time on. A time of -1 is the end of each queue.
    -c has the meaning that it has in mqadmin 4.9.

    \b
    Example: mqproof admin resetOffsetByTime -n 127.0.0.1:9876 -g G -t T -s 2026-05-01#08:00:00:000
    """
    if queue is not None and broker is None:
        fail("-q needs -b", WRONG_USE)
    if offset is not None and queue is None:
        fail("-o needs -b and -q", WRONG_USE)
    if broker is not None and cluster is not None:
        fail("give either -b HOST:PORT or --cluster CLUSTER", WRONG_USE)

    async def work(admin: Admin) -> None:
        if queue is None:
            found = await groups.reset_offsets(
                admin, group, topic, timestamp, force=force, cpp=cpp, cluster=cluster, broker=broker
            )
        else:
            found = await groups.reset_queue(
                admin, group, topic, broker, queue, timestamp_ms=timestamp, offset=offset
            )
        show(tables.offsets(found))

    perform(site, work)


def skip_accumulated_message(
    site: Site,
    group: Annotated[str, text("g", "group", "NAME", "The consumer group.")],
    topic: Topic,
    cluster: AtCluster = None,
) -> None:
    """Move a group to the end of each queue of a topic. It never receives the messages before that.

    \b
    Example: mqproof admin skipAccumulatedMessage -n 127.0.0.1:9876 -g G -t T
    """

    async def work(admin: Admin) -> None:
        show(tables.offsets(await groups.reset_offsets(admin, group, topic, groups.END, cluster=cluster)))

    perform(site, work)


def clone_group_offset(
    site: Site,
    source: Annotated[str, text("s", "srcGroup", "NAME", "The group whose offsets are copied.")],
    group: Annotated[str, text("d", "destGroup", "NAME", "The group that gets them.")],
    topic: Topic,
) -> None:
    """Set the offsets of a group in a topic to those of another group. Stop the group's members first.

    \b
    Example: mqproof admin cloneGroupOffset -n 127.0.0.1:9876 -s G -d G2 -t T
    """

    async def work(admin: Admin) -> None:
        for each in await groups.clone_offsets(admin, source, group, topic):
            say(f"{each}: {group} has the offsets of {source} in topic {topic}")

    perform(site, work)


def producer_connection(
    site: Site,
    group: Annotated[str, text("g", "producerGroup", "NAME", "The producer group.")],
    topic: Topic,
) -> None:
    """Show the connected producers of a group.

    \b
    Example: mqproof admin producerConnection -n 127.0.0.1:9876 -g mqproof_producer -t T
    """

    async def work(admin: Admin) -> None:
        found = await groups.producers(admin, group, topic)
        if not found:
            fail(f"no producer of group {group} is connected to a broker of topic {topic}", REFUSED)
        show(tables.connections(found))

    perform(site, work)


def producer(site: Site, broker: Annotated[Any, BROKER_REQUIRED]) -> None:
    """Show the producers that are connected to a broker.

    \b
    Example: mqproof admin producer -n 127.0.0.1:9876 -b 127.0.0.1:10911
    """

    async def work(admin: Admin) -> None:
        show(tables.producers(await groups.all_producers(admin, broker)))

    perform(site, work)


_ConsumerGroup = Annotated[str, text("g", "consumerGroup", "NAME", "The consumer group.")]


def consumer_connection(site: Site, group: _ConsumerGroup) -> None:
    """Show the members of a consumer group, and its subscriptions.

    \b
    Example: mqproof admin consumerConnection -n 127.0.0.1:9876 -g G
    """

    async def work(admin: Admin) -> None:
        found = await groups.connection(admin, group)
        if found is None:
            fail(f"no consumer of group {group} is connected", REFUSED)
        show(tables.connections(found.connection_set), tables.subscriptions(found))
        say(f"\n{found.consume_type}, {found.message_model}, {found.consume_from_where}")

    perform(site, work)


def consumer_status(
    site: Site,
    group: _ConsumerGroup,
    client: Annotated[str | None, text("i", "clientId", "ID", "Show only this member.")] = None,
) -> None:
    """Show the queues that each member of a group reads, and what it holds of them.

    \b
    Example: mqproof admin consumerStatus -n 127.0.0.1:9876 -g G
    """

    async def work(admin: Admin) -> None:
        found = await groups.running(admin, group, client)
        if not found:
            fail(f"no such member of group {group} answers", REFUSED)
        show(tables.running(found))

    perform(site, work)
