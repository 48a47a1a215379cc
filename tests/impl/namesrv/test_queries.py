"""Tests the requests of clients and tools over a simulated network.

Source: docs/reference/protocol/name-server.md, "Routes".
"""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from mqproof.impl.namesrv import queries
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import TopicConfig, TopicList, TopicRoute
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import ClusterRequest, PutKvRequest, RouteRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.spec.events import Kind
from tests.impl.namesrv.world import World, play

OTHER = ("b-b", "10.0.0.2:10911", "D")


async def names(world: World, code: RequestCode, cluster: str | None = None) -> list[str]:
    answer = await world.ask(code, ClusterRequest(cluster) if cluster else None)
    return sorted(java_json.read(TopicList, answer.body).topic_list)


def test_topics_are_listed_for_all_clusters_and_for_one() -> None:
    async def scenario(world: World) -> None:
        await world.register("T", "U")
        await world.register("U", "V", broker=OTHER)
        assert await names(world, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER) == ["T", "U", "V"]
        assert await names(world, RequestCode.GET_TOPICS_BY_CLUSTER, "D") == ["U", "V"]
        assert await names(world, RequestCode.GET_TOPICS_BY_CLUSTER, "unknown") == []

    play(scenario)


def test_clusters_and_brokers_are_listed_as_system_topics() -> None:
    async def scenario(world: World) -> None:
        assert await names(world, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS) == []
        await world.register()
        answer = await world.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        answered = java_json.read(TopicList, answer.body)
        assert (answered.topic_list, answered.broker_addr) == (["C", "b-a"], "10.0.0.1:10911")

    play(scenario)


def test_unit_topics_are_listed_by_their_flag() -> None:
    async def scenario(world: World) -> None:
        await world.register(*(TopicConfig(f"flag{flag}", topic_sys_flag=flag) for flag in range(4)))
        assert await names(world, RequestCode.GET_UNIT_TOPIC_LIST) == ["flag1", "flag3"]
        assert await names(world, RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST) == ["flag2", "flag3"]
        assert await names(world, RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST) == ["flag2"]

    play(scenario)


def test_a_route_has_the_order_of_its_topic_only_if_enabled() -> None:
    async def scenario(world: World) -> str | None:
        await world.register()
        await world.ask(RequestCode.PUT_KV_CONFIG, PutKvRequest("ORDER_TOPIC_CONFIG", "T", "b-a:4"))
        answer = await world.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("T"))
        return java_json.read(TopicRoute, answer.body).order_topic_conf

    assert play(scenario) is None
    assert play(scenario, NameServerConfig(port=0, order_messages=True)) == "b-a:4"


def test_routes_are_refused_after_the_start_if_brokers_are_waited_for() -> None:
    async def scenario(world: World) -> list[int]:
        await world.register()
        early = await world.route_code()
        await asyncio.sleep(46)
        return [early, await world.route_code()]

    assert play(scenario, NameServerConfig(port=0, wait_for_service=True)) == [ResponseCode.SYSTEM_ERROR, 0]


def test_lists_of_topics_can_be_disabled() -> None:
    async def scenario(world: World) -> list[int]:
        await world.register("T")
        return [
            (await world.ask(code, header)).code
            for code, header in (
                (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, None),
                (RequestCode.GET_TOPICS_BY_CLUSTER, ClusterRequest("C")),
                (RequestCode.GET_UNIT_TOPIC_LIST, None),
            )
        ]

    assert play(scenario) == [0, 0, 0]
    assert play(scenario, NameServerConfig(port=0, list_all_topics=False)) == [1, 0, 0]
    assert play(scenario, NameServerConfig(port=0, list_topics=False)) == [0, 1, 1]


def test_the_event_of_a_route_names_the_writable_brokers() -> None:
    async def scenario(world: World) -> list[tuple[str, str]]:
        await world.register(TopicConfig("T", perm=6))
        await world.register(TopicConfig("T", perm=4), broker=OTHER)
        await world.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("T"))
        await world.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest("unknown"))
        routes = [event for event in world.events if event.kind is Kind.ROUTE]
        return [(event.attrs["brokers"], event.attrs["writable"]) for event in routes]

    assert play(scenario) == [("b-a:0,b-b:0", "b-a"), ("", "")]


def test_routes_are_refused_for_45_seconds_after_the_start() -> None:
    async def scenario(world: World) -> None:
        await world.register()
        services = world.server._services
        request = new_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        await asyncio.sleep((services.started_ms + 44_999.5) / 1000 - world.loop.time())
        with pytest.raises(RefusedError, match="the name server has just started, brokers register"):
            queries.route(services, request, cast("Any", None))
        await asyncio.sleep(0.001)
        answer = queries.route(services, request, cast("Any", None))
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS

    play(scenario, NameServerConfig(port=0, wait_for_service=True))


@pytest.mark.parametrize(
    ("code", "key"),
    [
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "enableAllTopicList"),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, "enableTopicList"),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, "enableTopicList"),
    ],
)
def test_a_list_that_is_disabled_names_its_key(code: RequestCode, key: str) -> None:
    async def scenario(world: World) -> str | None:
        answer = await world.ask(code)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        return answer.remark

    config = NameServerConfig(port=0, list_topics=False, list_all_topics=False)
    assert play(scenario, config) == f"{key} is off, so topics are not listed"


@pytest.mark.parametrize(("version", "is_standard"), [(400, False), (401, True)])
def test_a_route_is_standard_json_for_clients_from_version_401_on_and_on_request(
    version: int, is_standard: bool
) -> None:
    async def scenario(world: World) -> list[bytes]:
        await world.register()
        found = []
        for fields in ({"topic": "T"}, {"topic": "T", "acceptStandardJsonOnly": "true"}):
            made = new_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
            request = msgspec.structs.replace(made, version=version)
            found.append((await world.client.invoke(world.address, request, 3.0)).body)
        return found

    plain, asked = play(scenario)
    assert b'{"0":' in asked
    assert (plain == asked) is is_standard
