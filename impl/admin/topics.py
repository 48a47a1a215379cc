"""Operations on topics: create, change, delete, list them, and read the extent of their queues."""

from collections.abc import Sequence
from typing import Final

import msgspec

from mqproof.impl.admin.admin import Admin, read_body, read_header
from mqproof.impl.client.model import ClientError, MessageQueue, RefusalError
from mqproof.impl.remoting import bodies, java_json
from mqproof.impl.remoting.bodies import (
    GroupList,
    QueueExtent,
    TopicConfig,
    TopicConfigList,
    TopicList,
    TopicStats,
)
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.headers import (
    ClusterRequest,
    DeleteRoutedTopicRequest,
    KvRequest,
    KvResponse,
    PutKvRequest,
    TopicRequest,
    UpdateTopicRequest,
)
from mqproof.impl.remoting.java_json import ObjectKey
from mqproof.impl.runtime.network import Address

_TEMPLATE: Final = "TBW102"
"""A mandatory member of the request, which brokers ignore."""

_ORDER_TOPICS: Final = "ORDER_TOPIC_CONFIG"


async def update_topic(
    admin: Admin, brokers: Sequence[Address], topic: TopicConfig, *, attributes: str | None = None
) -> None:
    """Create the topic at these brokers, or change it to these settings.

    `attributes` are changes of the additional attributes in 5.x, as `+name=value,-name`. Other brokers ignore
    them.
    """
    header = UpdateTopicRequest(
        topic=topic.topic_name,
        default_topic=_TEMPLATE,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=topic.perm,
        topic_filter_type=topic.topic_filter_type,
        topic_sys_flag=topic.topic_sys_flag,
        order=topic.order,
    )
    more = {} if attributes is None else {"attributes": attributes}
    for broker in brokers:
        await admin.ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header, more=more)


async def update_topics(admin: Admin, brokers: Sequence[Address], topics: list[TopicConfig]) -> None:
    """Create topics at these brokers, of 5.x or ours, or change them, in one request for each broker."""
    body = java_json.write(TopicConfigList(topics), standard=True)
    for broker in brokers:
        await admin.ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)


async def order_of(admin: Admin, topic: str) -> str | None:
    """Return the order of a topic that a name server has, such as `broker-a:4`; None if it has none."""
    try:
        answer = await admin.ask_name_server(RequestCode.GET_KV_CONFIG, KvRequest(_ORDER_TOPICS, topic))
    except RefusalError as error:
        if error.code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return None
    return read_header(KvResponse, answer).value


async def delete_order(admin: Admin, topic: str) -> None:
    """Delete the order of a topic at every name server."""
    await admin.ask_all_name_servers(RequestCode.DELETE_KV_CONFIG, KvRequest(_ORDER_TOPICS, topic))


async def set_order(admin: Admin, topic: str, queues: dict[str, int]) -> str:
    """Store at every name server how many queues each broker name has for an ordered topic."""
    order = ";".join(f"{name}:{count}" for name, count in sorted(queues.items()))
    await admin.ask_all_name_servers(RequestCode.PUT_KV_CONFIG, PutKvRequest(_ORDER_TOPICS, topic, order))
    return order


async def delete_topic(admin: Admin, brokers: Sequence[Address], topic: str, cluster: str) -> None:
    """Delete the topic at these brokers, then at every name server for that cluster."""
    for broker in brokers:
        await admin.ask(broker, RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic))
    # In this order, because a broker that still had the topic could register it again in between.
    header = DeleteRoutedTopicRequest(topic, cluster)
    await admin.ask_all_name_servers(RequestCode.DELETE_TOPIC_IN_NAMESRV, header)
    # Otherwise a later topic of the same name would inherit its order.
    await delete_order(admin, topic)


async def update_permission(
    admin: Admin, topic: str, perm: int, brokers: Sequence[Address]
) -> dict[Address, int]:
    """Change the permission of a topic at these brokers, and nothing else.

    Returns the previous permission at each. Raises ClientError when the topic is not at one of them.
    """
    route = await admin.route(topic)
    name_of = {
        text: broker.broker_name for broker in route.broker_datas for text in broker.broker_addrs.values()
    }
    data_of = {data.broker_name: data for data in route.queue_datas}
    known = {broker: data_of.get(name_of.get(str(broker), "")) for broker in brokers}
    before = {}
    for broker, data in known.items():
        if data is None:
            raise ClientError(f"topic {topic} is not at broker {broker}")
        before[broker] = data.perm
        await update_topic(
            admin,
            [broker],
            TopicConfig(
                topic,
                perm=perm,
                read_queue_nums=data.read_queue_nums,
                write_queue_nums=data.write_queue_nums,
                topic_sys_flag=data.topic_sys_flag,
            ),
        )
    return before


async def topic_names(admin: Admin, cluster: str | None = None) -> list[str]:
    """Return every topic that the name server knows, or those of one cluster, sorted."""
    if cluster is None:
        answer = await admin.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    else:
        answer = await admin.ask_name_server(RequestCode.GET_TOPICS_BY_CLUSTER, ClusterRequest(cluster))
    return sorted(read_body(TopicList, answer).topic_list)


async def groups_of(admin: Admin, topic: str) -> list[str]:
    """Return the consumer groups that have offsets in a topic or members that subscribe to it, sorted."""
    groups: set[str] = set()
    for broker in (await admin.masters_of(topic)).values():
        answer = await admin.ask(broker, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(topic))
        groups.update(read_body(GroupList, answer).group_list)
    return sorted(groups)


async def topic_stats(
    admin: Admin, topic: str, cluster: str | None = None
) -> dict[MessageQueue, QueueExtent]:
    """Return the extent of every queue of the topic, sorted by broker and queue.

    With a cluster, its brokers are queried.
    """
    found = {}
    for broker in (await admin.masters_of(topic, cluster)).values():
        answer = await admin.ask(broker, RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic))
        for key, extent in read_body(TopicStats, answer).offset_table.items():
            found[queue_of(key)] = extent
    return dict(sorted(found.items()))


def queue_of(key: ObjectKey) -> MessageQueue:
    """Return the queue that is the key of a table. Raises ClientError when the key is not a queue."""
    try:
        queue = key.as_a(bodies.MessageQueue)
    except (ValueError, msgspec.MsgspecError) as error:
        raise ClientError(f"the answer is invalid: {error}") from None
    return MessageQueue(queue.topic, queue.broker_name, queue.queue_id)
