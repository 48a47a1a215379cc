"""Tests routes: the queues that a route offers, and the requests to name servers."""

import asyncio
import gc
import logging
from typing import Any, cast

import msgspec
import pytest

from mqproof.impl.client.connection.routes import Routes, publish_queues, require, subscribe_queues
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import MessageQueue, NoRouteError
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import run_simulated
from tests.impl.world import World, play


def route(perm: int, *, ids: tuple[int, ...] = (0,)) -> TopicRoute:
    return TopicRoute(
        [BrokerData({id_: f"1.2.3.4:{id_}" for id_ in ids}, "b", "C")], [QueueData("b", perm, 2, 0, 1)]
    )


def test_writable_queues_need_permission_and_a_master() -> None:
    assert publish_queues("T", route(6)) == [MessageQueue("T", "b", 0)]
    assert publish_queues("T", route(4)) == []
    assert publish_queues("T", route(6, ids=(1,))) == []


def test_a_topic_with_an_order_has_the_queues_of_that_order() -> None:
    ordered = msgspec.structs.replace(route(4), order_topic_conf="b:2;a:1;nonsense;c:x;")
    assert publish_queues("T", ordered) == [
        MessageQueue("T", "a", 0),
        MessageQueue("T", "b", 0),
        MessageQueue("T", "b", 1),
    ]


def test_readable_queues_need_permission_and_any_replica() -> None:
    assert subscribe_queues("T", route(6, ids=(1,))) == [MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)]
    assert subscribe_queues("T", route(2)) == []
    assert subscribe_queues("T", route(6, ids=())) == []


def test_queues_of_a_missing_broker_are_left_out() -> None:
    gone = TopicRoute([], [QueueData("b", 6, 2, 0, 2)])
    assert publish_queues("T", gone) == subscribe_queues("T", gone) == []


def test_another_name_server_is_used_when_one_is_down_and_the_route_is_kept_when_all_are() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"x"))
        empty = NameServer(NameServerConfig(port=0), world.runtime)
        dead = await empty.start()
        await empty.stop()
        session = Session([dead, world.namesrv_address], world.runtime)
        known = await session.routes.refresh("T")
        assert known is not None
        await world.namesrv.stop()
        with pytest.raises(RemotingError):
            await session.routes.refresh("T")
        assert await session.routes.get("T") is known
        await session.routes.refresh_all()
        await session.stop()

    play(scenario)


def test_a_route_is_kept_when_the_name_server_no_longer_knows_the_topic() -> None:
    async def scenario(world: World) -> None:
        await world.producer.send(Message("T", b"x"))
        await asyncio.sleep(0.1)
        known = await world.session.routes.refresh("T")
        await world.stop_broker()
        assert await world.session.routes.refresh("T") is known

    play(scenario)


def test_a_topic_created_elsewhere_is_found_by_the_next_refresh() -> None:
    async def scenario(world: World) -> None:
        assert await world.session.routes.get("T") is None
        other = Session([world.namesrv_address], world.runtime)
        await Producer(other).send(Message("T", b"x"))
        await asyncio.sleep(0.1)
        assert await world.session.routes.get("T") is not None
        await other.stop()

    play(scenario)


def test_a_failed_route_request_without_waiting_caller_logs_nothing() -> None:
    async def scenario(world: World) -> list[str]:
        complaints: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, reported: complaints.append(reported["message"])
        )
        world.network.silence(world.namesrv_address)
        session = Session([world.namesrv_address], world.runtime)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await session.routes.refresh("T")
        await asyncio.sleep(60)
        gc.collect()
        return complaints

    assert play(scenario) == []


class NameServers:
    """Stands for the choice of a name server: responds after 0.1 s with the next response."""

    def __init__(self, *bodies: bytes | None) -> None:
        self._bodies = list(bodies)
        self.topics: list[str] = []

    async def invoke(self, code: RequestCode, fields: dict[str, str]) -> Command:
        self.topics.append(fields["topic"])
        await asyncio.sleep(0.1)
        body = self._bodies.pop(0) if self._bodies else java_json.write(route(6))
        if body is None:
            raise RemotingError("silent")
        return new_request(code).answer(ResponseCode.SUCCESS, body=body)


def scripted(*bodies: bytes | None) -> tuple[Routes, NameServers]:
    name_servers = NameServers(*bodies)
    return Routes(cast(Any, name_servers)), name_servers


def test_a_doubted_route_is_requested_again_at_most_twice_a_second() -> None:
    async def scenario() -> None:
        routes, name_servers = scripted()
        routes.doubt("T")  # was not requested yet
        assert name_servers.topics == []
        await routes.get("T")
        for pause_s, requests in ((0.39, 1), (0.01, 2), (0.05, 2), (0.44, 2), (0.01, 3)):
            await asyncio.sleep(pause_s)
            routes.doubt("T")
            await asyncio.sleep(0)
            assert len(name_servers.topics) == requests, pause_s
        await asyncio.sleep(1)

    run_simulated(scenario())


def test_a_route_in_doubt_is_not_requested_twice_at_a_time() -> None:
    async def scenario() -> None:
        routes, name_servers = scripted()
        await asyncio.gather(*(routes.refresh("T") for _ in range(3)))
        await asyncio.sleep(1)
        asking = asyncio.create_task(routes.refresh("T"))
        await asyncio.sleep(0)
        routes._asked_s["T"] -= 1  # as if it took long
        routes.doubt("T")
        assert await asking == routes.known("T")
        assert name_servers.topics == ["T", "T"]

    run_simulated(scenario())


def test_a_route_that_is_not_refreshed_is_logged_and_the_others_are(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        body = java_json.write(route(6))
        routes, name_servers = scripted(body, body, None)
        for topic in ("T", "U"):
            await routes.get(topic)
        await routes.refresh_all()
        assert name_servers.topics == ["T", "U", "T", "U"]
        assert routes.topics() == ["T", "U"]

    with caplog.at_level(logging.INFO):
        run_simulated(scenario())
    assert caplog.messages == ["the route of T is not refreshed: silent"]


@pytest.mark.parametrize(
    "wrong",
    [
        b"{",
        java_json.write(TopicRoute([BrokerData({0: "nowhere"}, "b", "C")], [])),
        java_json.write(TopicRoute([], [], {"1.2.3.4:1": ["nowhere"]})),
    ],
)
def test_a_route_with_a_wrong_address_is_refused(wrong: bytes) -> None:
    async def scenario() -> None:
        routes, _ = scripted(wrong)
        with pytest.raises(RemotingError, match="the route of T is invalid: "):
            await routes.get("T")
        assert routes.known("T") is None

    run_simulated(scenario())


def test_addresses_are_found_by_topic_broker_and_role() -> None:
    routes, _ = scripted()
    routes._routes["T"] = TopicRoute(
        [
            BrokerData({}, "a", "C"),
            BrokerData({2: "h:12", 1: "h:11"}, "a", "C"),
            BrokerData({1: "h:21", 0: "h:20"}, "b", "C"),
        ],
        [],
        {"h:20": ["f:2", "f:1"], "h:11": None},
    )
    routes._routes["U"] = TopicRoute(
        [BrokerData({0: "h:20"}, "b", "C"), BrokerData({0: "h:30"}, "c", "C")], []
    )
    assert [str(each) for each in routes.brokers()] == ["h:11", "h:12", "h:20", "h:21", "h:30"]
    assert routes.address("T", "a") is None
    assert routes.address("T", "a", master_only=False) == Address("h", 11)
    assert routes.address("T", "b") == routes.address("T", "b", master_only=False) == Address("h", 20)
    assert routes.address("T", "c") == routes.address("unknown", "c") == Address("h", 30)
    assert routes.address("T", "d") is None
    assert routes.replicas("T", "b") == {0: Address("h", 20), 1: Address("h", 21)}
    assert routes.replicas("T", "c") == routes.replicas("unknown", "b") == {}
    assert routes.filter_servers("T", Address("h", 20)) == [Address("f", 2), Address("f", 1)]
    assert routes.filter_servers("T", Address("h", 11)) == routes.filter_servers("T", Address("h", 12)) == []
    assert routes.filter_servers("unknown", Address("h", 20)) == []
    assert routes.brokers_of("T") == [Address("h", 11), Address("h", 20)]
    assert routes.brokers_of("unknown") == []


@pytest.mark.parametrize(("count", "listed"), [(65_536, 65_536), (65_537, 65_536)])
def test_the_number_of_queues_of_one_broker_is_limited(count: int, listed: int) -> None:
    known = TopicRoute([BrokerData({0: "h:1"}, "b", "C")], [QueueData("b", 6, count, 0, count)])
    ordered = msgspec.structs.replace(known, order_topic_conf=f"b:{count}")
    for found in (subscribe_queues("T", known), publish_queues("T", known), publish_queues("T", ordered)):
        assert len(found) == listed


def test_queues_are_in_the_order_of_their_brokers() -> None:
    brokers = [BrokerData({0: "h:1"}, name, "C") for name in ("b", "a")]
    known = TopicRoute(brokers, [QueueData(name, 6, 1, 0, 1) for name in ("b", "a")])
    assert [queue.broker_name for queue in publish_queues("T", known)] == ["a", "b"]
    assert [queue.broker_name for queue in subscribe_queues("T", known)] == ["a", "b"]


def test_a_part_of_an_order_without_a_name_or_with_another_number_is_ignored() -> None:
    ordered = msgspec.structs.replace(route(4), order_topic_conf=":1;d:\u0663;a:b:1;e:0;f:-1")
    assert publish_queues("T", ordered) == [MessageQueue("T", "a:b", 0)]


def test_a_topic_without_a_route_is_an_error_with_its_name() -> None:
    with pytest.raises(NoRouteError, match="no name server knows topic T"):
        require("T", None)
    assert require("T", route(6)) == route(6)
