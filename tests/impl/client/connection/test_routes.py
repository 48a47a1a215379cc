"""Tests routes: the queues that a route offers, and the requests to name servers."""

import asyncio
import gc

import msgspec
import pytest

from mqproof.impl.client.connection.routes import publish_queues, subscribe_queues
from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.model import MessageQueue
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.server import NameServer
from mqproof.impl.remoting.bodies import BrokerData, QueueData, TopicRoute
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.message import Message
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
