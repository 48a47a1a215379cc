"""Queries of clients and tools: routes, brokers, topics.

See docs/reference/protocol/name-server.md, "Routes".
"""

from collections.abc import Callable
from typing import Final

import msgspec

from mqproof.impl.namesrv.kv_config import ORDER_TOPICS
from mqproof.impl.namesrv.services import Processor, Services, now_ms
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import PERM_WRITE, TopicList, TopicRoute
from mqproof.impl.remoting.channel import Channel, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import ClusterRequest, RouteRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.spec.events import Kind

_STANDARD_JSON_SINCE: Final = 401
"""Requests of this protocol version and later get route data in standard JSON."""

_UNIT: Final = 1
_UNIT_SUBSCRIBED: Final = 2


def route(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the route of a topic: its brokers and their queues."""
    header = headers.read(RouteRequest, request.fields)
    config = services.config
    if config.wait_for_service and now_ms() < services.started_ms + config.wait_s * 1000:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "the name server has just started, brokers register")
    found = services.table.route(header.topic, acting_masters=config.acting_masters)
    _emit_route(services, header.topic, found)
    if found is None:
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, f"no route info of this topic: {header.topic}")
    if config.order_messages:
        found = msgspec.structs.replace(found, order_topic_conf=services.kv.get(ORDER_TOPICS, header.topic))
    standard = header.accept_standard_json_only or request.version >= _STANDARD_JSON_SINCE
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(found, standard=standard))


def _emit_route(services: Services, topic: str, found: TopicRoute | None) -> None:
    """Record in the event log which brokers a route contains, and which broker names are writable."""
    if services.events is None:
        return
    brokers, writable = "", ""
    if found is not None:
        members = (
            f"{broker.broker_name}:{id_}" for broker in found.broker_datas for id_ in broker.broker_addrs
        )
        brokers = ",".join(sorted(members))
        writable = ",".join(sorted(q.broker_name for q in found.queue_datas if q.perm & PERM_WRITE))
    services.events.emit(Kind.ROUTE, topic=topic, attrs={"brokers": brokers, "writable": writable})


def cluster_info(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return every broker, and the clusters that they form."""
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(services.table.cluster_info()))


def all_topics(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return every topic that has queues."""
    _require(services.config.list_all_topics, "enableAllTopicList")
    return _topics(request, services.table.topics())


def topics_of_cluster(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the topics of one cluster. An unknown cluster has none."""
    _require(services.config.list_topics, "enableTopicList")
    header = headers.read(ClusterRequest, request.fields)
    return _topics(request, services.table.topics_of_cluster(header.cluster))


def system_topics(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
    """Return the topics named after clusters and brokers, and the address of one broker.

    That broker can list the other system topics.
    """
    info = services.table.cluster_info()
    names = [*info.cluster_addr_table, *info.broker_addr_table]
    addresses = [
        address for data in info.broker_addr_table.values() for address in data.broker_addrs.values()
    ]
    return _topics(request, names, next(iter(addresses), None))


def _flagged(wanted: Callable[[int], bool]) -> Callable[[Services, Command, Channel], Reply]:
    def topics(services: Services, request: Command, channel: Channel) -> Reply:  # noqa: ARG001
        _require(services.config.list_topics, "enableTopicList")
        return _topics(request, services.table.topics_flagged(wanted))

    return topics


def _require(is_enabled: bool, key: str) -> None:
    if not is_enabled:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"{key} is off, so topics are not listed")


def _topics(request: Command, names: list[str], address: str | None = None) -> Command:
    return request.answer(ResponseCode.SUCCESS, body=java_json.write(TopicList(address, names)))


PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
    RequestCode.GET_BROKER_CLUSTER_INFO: cluster_info,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: all_topics,
    RequestCode.GET_TOPICS_BY_CLUSTER: topics_of_cluster,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: system_topics,
    RequestCode.GET_UNIT_TOPIC_LIST: _flagged(lambda flag: bool(flag & _UNIT)),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _flagged(lambda flag: bool(flag & _UNIT_SUBSCRIBED)),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _flagged(
        lambda flag: bool(flag & _UNIT_SUBSCRIBED) and not flag & _UNIT
    ),
}
