"""Tests two brokers of which one stops and restarts: producers use the other, consumers miss nothing."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mqproof.impl.broker.broker import Broker
from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.client.consuming.push_consumer import PushConsumerConfig
from mqproof.impl.client.model import ClientError, MessageQueue, Sent
from mqproof.impl.client.producing.producer import Producer, ProducerConfig
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.message import Message
from tests.impl.client.members import Ear, member, numbers
from tests.impl.world import SMALL_STORE, World, play

SECOND = BrokerConfig(name="broker-b", store_directory="/store-b", port=10_922, store=SMALL_STORE)


async def start_second(world: World) -> Broker:
    broker = Broker(replace(SECOND, name_servers=(world.namesrv_address,)), world.runtime)
    await broker.start()
    return broker


async def spread(world: World, second: Broker) -> None:
    """Create topic T at both brokers, known to all clients."""
    assert world.broker is not None
    for broker in (world.broker, second):
        assert broker.services is not None
        await broker.services.topics.create_for_send("T", "TBW102", 2)
    await asyncio.sleep(0.1)


def test_route_5_sends_go_to_the_other_broker_at_once_when_one_is_down() -> None:
    """ROUTE-5 RetryAvoidsLastBroker: long before the route changes."""

    async def scenario(world: World) -> tuple[Counter[str], Counter[str]]:
        second = await start_second(world)
        await spread(world, second)
        outcomes = [await world.producer.send(Message("T", b"x")) for _ in range(8)]
        before = Counter(each.queue.broker_name for each in outcomes if isinstance(each, Sent))
        await second.stop()
        outcomes = [await world.producer.send(Message("T", b"x")) for _ in range(8)]
        return before, Counter(each.queue.broker_name for each in outcomes if isinstance(each, Sent))

    assert play(scenario) == ({"broker-a": 4, "broker-b": 4}, {"broker-a": 8})


def test_route_6_with_the_latency_strategy_a_broker_that_is_down_is_tried_once_per_avoidance() -> None:
    """ROUTE-6 FaultyBrokerRested."""

    async def scenario(world: World) -> list[int]:
        second = await start_second(world)
        await spread(world, second)
        producer = Producer(world.session, ProducerConfig(latency_fault_strategy=True))
        await producer.send(Message("T", b"x"))
        await second.stop()
        outcomes = [await producer.send(Message("T", b"x")) for _ in range(20)]
        return [each.attempts for each in outcomes]

    attempts = play(scenario)
    assert sorted(attempts) == [1] * 19 + [2]


@pytest.mark.parametrize("orderly", [False, True])
def test_deliv_1_messages_of_a_broker_that_was_down_are_consumed_when_it_restarts(orderly: bool) -> None:
    """DELIV-1 NoAckedLost."""

    async def scenario(world: World) -> tuple[list[bytes], list[bytes]]:
        ear = Ear()
        second = await start_second(world)
        await spread(world, second)
        for body in numbers(0, 12):
            assert isinstance(await world.producer.send(Message("T", body)), Sent)
        await second.stop()
        async with member(world, "c1", ear, PushConsumerConfig(orderly=orderly)):
            await asyncio.sleep(60)
            early = ear.bodies()
            second = await start_second(world)
            await asyncio.sleep(60)
            await second.stop()
        return early, ear.bodies()

    early, bodies = play(scenario)
    assert len(early) == 6
    assert sorted(bodies) == sorted(numbers(0, 12))


async def move(world: World) -> None:
    """The broker restarts at another address with the same name and the same store."""
    before = world.broker_address
    await world.stop_broker()
    await world.start_broker()
    assert world.broker_address != before


async def sent(world: World) -> bool:
    return isinstance(await world.producer.send(Message("T", b"x")), Sent)


async def sent_oneway(world: World) -> bool:
    try:
        await world.producer.send_oneway(Message("T", b"x"))
    except RemotingError:
        return False
    return True


async def pulled(world: World) -> bool:
    try:
        await world.consumer.pull(MessageQueue("T", "broker-a", 0), 0)
    except ClientError:
        return False
    return True


@pytest.mark.parametrize("call", [sent, sent_oneway, pulled])
def test_a_client_that_finds_a_broker_down_requests_the_route_at_once(
    call: Callable[[World], Awaitable[bool]],
) -> None:
    """The client does not wait for the periodic refresh of the route, after 30 s."""

    async def scenario(world: World) -> float:
        assert await sent(world)
        assert await world.session.routes.refresh("T")
        assert await call(world)
        await asyncio.sleep(1)
        await move(world)
        began_s = asyncio.get_running_loop().time()
        while not await call(world):
            await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time() - began_s

    assert play(scenario) < 1


@pytest.mark.parametrize("call", [sent, pulled])
def test_a_broker_that_left_the_route_of_its_topic_is_found_as_soon_as_it_restarts(
    call: Callable[[World], Awaitable[bool]],
) -> None:
    async def scenario(world: World) -> float:
        second = await start_second(world)
        await spread(world, second)
        assert await world.session.routes.refresh("T")
        await world.stop_broker()
        await world.session.routes.refresh("T")
        await second.stop()
        await asyncio.sleep(1)
        assert not await call(world)
        await world.start_broker()
        began_s = asyncio.get_running_loop().time()
        while not await call(world):
            await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time() - began_s

    assert play(scenario) < 2


def test_while_a_broker_stays_down_its_route_is_requested_at_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> int:
        assert await sent(world)
        await asyncio.sleep(1)
        assert await world.session.routes.refresh("T")
        await world.stop_broker()
        asked = 0
        ask = world.session.name_servers.invoke

        async def count(code: RequestCode, *rest: object) -> object:
            nonlocal asked
            asked += code is RequestCode.GET_ROUTEINFO_BY_TOPIC
            return await ask(code, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(world.session.name_servers, "invoke", count)
        for _ in range(100):
            assert not await sent(world)
            await asyncio.sleep(0.1)
        return asked

    assert 10 <= play(scenario) <= 22


def test_a_consumer_that_a_broker_refuses_looks_for_another_broker() -> None:
    async def scenario(world: World) -> tuple[bool, bool]:
        assert await sent(world)
        known = await world.session.routes.refresh("T")
        assert await pulled(world)
        await asyncio.sleep(1)
        assert world.broker is not None
        world.broker._processors = None  # as while it starts
        refused = not await pulled(world)
        await asyncio.sleep(1)
        return refused, world.session.routes.known("T") is not known

    assert play(scenario) == (True, True)


def test_a_producer_that_a_broker_refuses_looks_for_another_broker() -> None:
    async def scenario(world: World) -> tuple[bool, bool]:
        assert await sent(world)
        known = await world.session.routes.refresh("T")
        await asyncio.sleep(1)
        assert world.broker is not None
        world.broker.store.refusal = "it is a slave now"
        refused = not await sent(world)
        await asyncio.sleep(1)
        return refused, world.session.routes.known("T") is not known

    assert play(scenario) == (True, True)
