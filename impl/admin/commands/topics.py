"""Commands about topics."""

from typing import Annotated, Any

import typer

from mqproof.impl.admin import list_files, tables, topic_rates, topics
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.options import (
    AtCluster,
    Broker,
    Cluster,
    Permission,
    Topic,
    count,
    flag,
    list_file,
    parsed,
    text,
)
from mqproof.impl.admin.run import WRONG_USE, Site, fail, perform, require_one, say, show, targets
from mqproof.impl.client.connection.routes import subscribe_queues
from mqproof.impl.client.consuming.allocation import averagely
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.bodies import TopicConfig

_UNIT = 1
_UNIT_SUBSCRIBED = 2

_ORDER = "With -m put: the number of queues of each broker."


def _method(value: str) -> str:
    if value not in ("put", "get", "delete"):
        raise ValueError(f"{value!r}, put, get or delete expected")
    return value


def _order(value: str) -> dict[str, int]:
    order = {}
    for part in value.split(";"):
        name, _, number = part.strip().rpartition(":")
        if not name or not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{part!r}, BROKER:NUMBER expected")
        order[name] = int(number)
    return order


_METHOD = typer.Option(
    "-m", "--method", parser=parsed("m", _method), metavar="put|get|delete", help="What to do."
)


def update_topic(
    site: Site,
    topic: Topic,
    broker: Broker = None,
    cluster: Cluster = None,
    read_queues: Annotated[int, count("r", "readQueueNums", "The number of queues to read from.")] = 8,
    write_queues: Annotated[int, count("w", "writeQueueNums", "The number of queues to write to.")] = 8,
    perm: Permission = 6,
    order: Annotated[
        Any, flag("o", "order", "Whether name servers report its queues per broker to producers.")
    ] = "false",
    unit: Annotated[Any, flag("u", "unit", "Whether the topic belongs to a unit.")] = "false",
    unit_sub: Annotated[Any, flag("s", "hasUnitSub", "Whether units subscribe to the topic.")] = "false",
    attributes: Annotated[
        str | None, text("a", "attributes", "+A=B,-C", "Attributes, which only brokers of 5.x support.")
    ] = None,
) -> None:
    """Create a topic, or change it.

    At one broker (-b) or at all masters of a cluster (-c).

    \b
    Example: mqproof admin updateTopic -n 127.0.0.1:9876 -c DefaultCluster -t T -r 4 -w 4
    """
    require_one(broker, cluster)
    config = TopicConfig(
        topic,
        order=order,
        perm=perm,
        read_queue_nums=read_queues,
        write_queue_nums=write_queues,
        topic_sys_flag=(_UNIT if unit else 0) | (_UNIT_SUBSCRIBED if unit_sub else 0),
    )

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await topics.update_topic(admin, brokers, config, attributes=attributes)
        queues = f"{read_queues} read queues, {write_queues} write queues, {tables.permission(perm)}"
        for each in brokers:
            say(f"topic {topic} is at {each}: {queues}")
        if order:
            names = await admin.names_at(brokers)
            say(f"order: {await topics.set_order(admin, topic, dict.fromkeys(names, write_queues))}")

    perform(site, work)


def update_topic_list(
    site: Site,
    topics_of: Annotated[Any, list_file(list_files.read_topics)],
    broker: Broker = None,
    cluster: Cluster = None,
) -> None:
    """Create topics, or change them, from a file.

    The file has a JSON list of topics, or is one that exportMetadata wrote. At one broker (-b) or at all
    masters of a cluster (-c), of 5.x or ours.

    \b
    Example: mqproof admin updateTopicList -n 127.0.0.1:9876 -c DefaultCluster -f topics.json
    A file:  [{"topicName": "T", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}]
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        await topics.update_topics(admin, brokers, topics_of)
        for each in brokers:
            say(f"topics created or changed at {each}: {len(topics_of)}")

    perform(site, work)


def update_order_conf(
    site: Site,
    topic: Topic,
    method: Annotated[Any, _METHOD],
    order: Annotated[
        Any,
        typer.Option("-v", "--orderConf", parser=parsed("v", _order), metavar="BROKER:N;...", help=_ORDER),
    ] = None,
) -> None:
    """Show how many queues of an ordered topic each broker has; or set or delete it.

    Name servers report it to producers. It is set and deleted at all of them, and read from one.

    \b
    Example: mqproof admin updateOrderConf -n 127.0.0.1:9876 -t T -m put -v broker-a:4
    """
    if (method == "put") != (order is not None):
        fail("-m put needs -v" if order is None else f"-v is only for -m put, not {method}", WRONG_USE)

    async def work(admin: Admin) -> None:
        if method == "put":
            say(f"{topic}: {await topics.set_order(admin, topic, order)}")
        elif method == "delete":
            await topics.delete_order(admin, topic)
            say(f"{topic}: the order is deleted")
        elif (found := await topics.order_of(admin, topic)) is None:
            raise ClientError(f"topic {topic} has no order")
        else:
            say(tables.visible(f"{topic}: {found}"))

    perform(site, work)


def delete_topic(
    site: Site,
    topic: Topic,
    cluster: Annotated[str, text("c", "clusterName", "NAME", "The cluster to delete the topic from.")],
) -> None:
    """Delete a topic from a cluster.

    The topic is deleted at all masters of the cluster, then at the name servers.

    \b
    Example: mqproof admin deleteTopic -n 127.0.0.1:9876 -c DefaultCluster -t T
    """

    async def work(admin: Admin) -> None:
        brokers = await admin.masters(cluster)
        await topics.delete_topic(admin, brokers, topic, cluster)
        say(f"topic {topic} is deleted from cluster {cluster}: {', '.join(map(str, brokers))}")

    perform(site, work)


def update_topic_perm(
    site: Site, topic: Topic, perm: Permission, broker: Broker = None, cluster: Cluster = None
) -> None:
    """Change the permissions of a topic.

    Nothing else about the topic changes. Select one broker (-b) or all masters of a cluster (-c).

    \b
    Example: mqproof admin updateTopicPerm -n 127.0.0.1:9876 -c DefaultCluster -t T -p 4
    """
    require_one(broker, cluster)

    async def work(admin: Admin) -> None:
        brokers = await targets(admin, broker, cluster)
        before = await topics.update_permission(admin, topic, perm, brokers)
        for each, old in before.items():
            say(f"topic {topic} at {each}: {tables.permission(old)} is now {tables.permission(perm)}")

    perform(site, work)


def topic_route(
    site: Site,
    topic: Topic,
    as_list: Annotated[bool, typer.Option("-l", "--list", help="Print one table instead of two.")] = False,
) -> None:
    """Show the brokers and queues of a topic.

    \b
    Example: mqproof admin topicRoute -n 127.0.0.1:9876 -t T
    """

    async def work(admin: Admin) -> None:
        route = await admin.route(topic)
        if as_list:
            show(tables.route_list(route))
        else:
            show(tables.route_brokers(route), tables.route_queues(route))
        if route.order_topic_conf:
            say(f"order: {tables.visible(route.order_topic_conf)}")

    perform(site, work)


def topic_list(
    site: Site,
    clusters: Annotated[
        bool,
        typer.Option(
            "-c", "--clusterModel", help="Print each topic with its cluster and its consumer groups."
        ),
    ] = False,
) -> None:
    """List the topics, one a line.

    \b
    Example: mqproof admin topicList -n 127.0.0.1:9876
    """

    async def work(admin: Admin) -> None:
        if not clusters:
            for name in await topics.topic_names(admin):
                say(tables.visible(name))
            return
        lines = [
            (cluster, name, ", ".join(await topics.groups_of(admin, name)) or "-")
            for cluster in sorted((await admin.cluster_info()).cluster_addr_table)
            for name in await topics.topic_names(admin, cluster)
        ]
        show(tables.rows(("cluster", "topic", "consumer groups"), lines))

    perform(site, work)


def topic_status(site: Site, topic: Topic, cluster: AtCluster = None) -> None:
    """Show the offsets of each queue of a topic.

    \b
    Example: mqproof admin topicStatus -n 127.0.0.1:9876 -t T
    """

    async def work(admin: Admin) -> None:
        show(tables.topic_status(await topics.topic_stats(admin, topic, cluster)))

    perform(site, work)


def allocate_mq(
    site: Site,
    topic: Topic,
    clients: Annotated[str, text("i", "ipList", "IP,IP", "The clients, separated by commas.")],
) -> None:
    """Show how the default strategy divides the queues of a topic among clients. Nothing is changed.

    \b
    Example: mqproof admin allocateMQ -n 127.0.0.1:9876 -t T -i 10.0.0.1,10.0.0.2
    """
    names = sorted({name.strip() for name in clients.split(",") if name.strip()})

    async def work(admin: Admin) -> None:
        queues = sorted(subscribe_queues(topic, await admin.route(topic)))
        show(tables.shares({name: averagely(queues, names, name) for name in names}))

    perform(site, work)


def stats_all(
    site: Site,
    topic: Annotated[str | None, text("t", "topic", "NAME", "Only this topic.")] = None,
    active: Annotated[
        bool, typer.Option("-a", "--activeTopic", help="Only topics with messages in the last 24 hours.")
    ] = False,
) -> None:
    """Show the traffic of topics and of the groups that consume them.

    \b
    Example: mqproof admin statsAll -n 127.0.0.1:9876
    """

    async def work(admin: Admin) -> None:
        found = await (topic_rates.traffic_of(admin, topic) if topic else topic_rates.all_traffic(admin))
        show(tables.traffic([each for each in found if each.is_active or not active]))

    perform(site, work)


def topic_cluster_list(site: Site, topic: Topic) -> None:
    """List the clusters that have a topic, one a line.

    \b
    Example: mqproof admin topicClusterList -n 127.0.0.1:9876 -t T
    """

    async def work(admin: Admin) -> None:
        for name in sorted({broker.cluster for broker in (await admin.route(topic)).broker_datas}):
            say(tables.visible(name))

    perform(site, work)
