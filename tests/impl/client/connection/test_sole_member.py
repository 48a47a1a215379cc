"""Tests that a second process with the client id of a member is noticed. Sessions stand for processes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.connection.sole_member import require_sole
from mqproof.impl.client.consuming.lite_pull_consumer import LitePullConsumer
from mqproof.impl.client.consuming.pull_consumer import PullConsumer
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.consuming.scheduled_pull import ScheduledPull
from mqproof.impl.client.model import ClientError, MessageQueue, Sent
from mqproof.impl.client.producing.producer import Producer
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import Address
from tests.impl.client.members import GROUP, Ear, make_topic
from tests.impl.world import World, play

ID = "10.0.0.1@billing"
TWICE = f"another process is a consumer of group {GROUP} with client id {ID}"


def process(world: World, *, is_id_chosen: bool = True) -> Session:
    """Return a session with claims of its own, as those of another process are."""
    return Session([world.namesrv_address], world.runtime, ID, is_id_chosen=is_id_chosen)


async def push(session: Session) -> Callable[[], Awaitable[None]]:
    consumer = PushConsumer(session, GROUP, Ear())
    await consumer.subscribe("T")
    await consumer.start()
    return consumer.stop


async def push_later(session: Session) -> Callable[[], Awaitable[None]]:
    """Subscribe after the start, when the producer of the session has greeted the broker already."""
    outcome = await Producer(session).send(Message("T", b"x"))
    assert isinstance(outcome, Sent)
    consumer = PushConsumer(session, GROUP, Ear())
    await consumer.start()
    await asyncio.sleep(40)
    await consumer.subscribe("T")
    return consumer.stop


async def lite(session: Session) -> Callable[[], Awaitable[None]]:
    consumer = LitePullConsumer(session, GROUP)
    await consumer.start()
    try:
        await consumer.subscribe("T")
    except ClientError:
        await consumer.stop()
        raise
    return consumer.stop


async def scheduled(session: Session) -> Callable[[], Awaitable[None]]:
    async def task(_consumer: PullConsumer, _queue: MessageQueue) -> None:
        """Does nothing."""

    service = ScheduledPull(session, GROUP)
    await service.start()
    try:
        await service.register("T", task)
    except ClientError:
        await service.stop()
        raise
    return service.stop


Start = Callable[[Session], Awaitable[Callable[[], Awaitable[None]]]]
KINDS = [push, push_later, lite, scheduled]


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", [push, lite])
def test_a_second_process_with_the_client_id_of_a_member_is_refused(first: Start, second: Start) -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with process(world) as one, process(world) as other:
            stop = await first(one)
            with pytest.raises(ClientError, match=TWICE):
                await second(other)
            await stop()
            await (await second(other))()  # after the first member has left

    play(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_does_not_mistake_itself_for_another_one(kind: Start) -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with process(world) as session:
            for _ in range(2):
                await (await kind(session))()

    play(scenario)


def test_a_member_that_is_gone_without_a_word_is_no_obstacle() -> None:
    async def scenario(world: World) -> float:
        await make_topic(world)
        async with process(world) as gone:
            await push(gone)
            world.some_died = True
            gone.remoting._handle = lambda _request, _channel: None  # it is connected, and answers nothing
            for channel in gone.remoting._channels.values():
                channel._handle = gone.remoting._handle
            async with process(world) as session:
                begun_s = asyncio.get_running_loop().time()
                stop = await push(session)
                took_s = asyncio.get_running_loop().time() - begun_s
                await stop()
        return took_s

    assert 3 <= play(scenario) < 3.5


def test_an_id_that_is_unique_by_its_construction_is_not_checked() -> None:
    async def scenario(world: World) -> None:
        await make_topic(world)
        async with process(world, is_id_chosen=False) as one, process(world, is_id_chosen=False) as other:
            stops = [await push(one), await push(other)]
            for stop in stops:
                await stop()

    play(scenario)


def test_each_broker_is_asked_once_for_the_member_without_its_stack() -> None:
    asked: list[tuple[Address, Mapping[str, str]]] = []

    async def invoke(address: Address, request: Command, _timeout_s: float) -> Command:
        asked.append((address, request.fields))
        return request.answer(ResponseCode.SYSTEM_ERROR)

    brokers = [Address("b", 2), Address("b", 1), Address("b", 2)]
    asyncio.run(require_sole(cast(Any, SimpleNamespace(invoke=invoke)), brokers, "G", ID))
    fields = {"consumerGroup": "G", "clientId": ID, "jstackEnable": "false"}
    assert asked == [(Address("b", 1), fields), (Address("b", 2), fields)]
