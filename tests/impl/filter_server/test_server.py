"""Tests a filter server between a consumer and a broker, in the simulated world.

Source: docs/reference/protocol/filters.md, "Filter servers".
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest

from mqproof.impl.client.connection.session import Session
from mqproof.impl.client.consuming.pull_consumer import PullConsumer, topic_queues
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.message_selector import MessageSelector
from mqproof.impl.client.messages.compose import new_message
from mqproof.impl.client.model import ClientError, MessageQueue, ReceivedMessage, RefusalError, Sent
from mqproof.impl.filter_server.functions import Limits
from mqproof.impl.filter_server.server import REGISTER_S, FilterServer, FilterServerConfig
from mqproof.impl.filtering.function_names import function_name
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import RegisterFilterServerRequest, RegisterFunctionRequest
from mqproof.impl.runtime.disk import write_durably
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from tests.impl.access.test_acl import ADMIN, ORDERS, PATH, TEXT
from tests.impl.broker.processors.test_send import CONFIG
from tests.impl.filter_server.test_functions import STARTS_WITH_A, matches, module
from tests.impl.world import World

T = TypeVar("T")

FUNCTION = MessageSelector.function(module(STARTS_WITH_A))
ALL = MessageSelector.function(matches("(i32.const 1)"))
FAILS_AT_B = MessageSelector.function(
    matches(
        "(block (br_if 0 (i32.ne (i32.load8_u (local.get 2)) (i32.const 98))) (loop (br 0))) (i32.const 1)"
    )
)


def play(scenario: Callable[[World], Awaitable[T]]) -> T:
    loop = SimulatedLoop()

    async def main() -> T:
        async with World(loop, config=replace(CONFIG, filter_servers=True)) as world:
            return await scenario(world)

    return run_simulated(main(), loop)


@asynccontextmanager
async def filtering(world: World, limits: Limits | None = None) -> AsyncIterator[FilterServer]:
    """Run a filter server, and return when the name server knows it."""
    config = FilterServerConfig(world.broker_address, limits=limits or Limits())
    server = FilterServer(config, world.runtime)
    await server.start()
    await asyncio.sleep(1)
    try:
        yield server
    finally:
        await server.stop()


async def send(world: World, *bodies: str) -> MessageQueue:
    queue: MessageQueue | None = None
    for body in bodies:
        sent = await world.producer.send(new_message("T", body.encode()), queue)
        assert isinstance(sent, Sent)
        queue = sent.queue
    assert queue is not None
    return queue


async def pulled(world: World, queue: MessageQueue, selector: MessageSelector = FUNCTION) -> list[str]:
    """Pull a queue to its end."""
    found: list[str] = []
    offset = 0
    await topic_queues(world.session, "T")  # the route names the filter server only since it is registered
    while True:
        result = await world.consumer.pull(queue, offset, tags=selector)
        if result.status == "NO_NEW_MESSAGE":
            return found
        found += [stored.message.body.decode() for stored in result.messages]
        offset = result.next_offset


def test_a_consumer_receives_what_its_function_selects() -> None:
    async def scenario(world: World) -> list[str]:
        queue = await send(world, "apple", "berry", "avocado", "b" * 10_000, "a" * 10_000)
        async with filtering(world):
            return await pulled(world, queue)

    assert play(scenario) == ["apple", "avocado", "a" * 10_000]


def test_a_push_consumer_uploads_its_function_and_commits_beyond_what_it_does_not_select() -> None:
    async def scenario(world: World) -> tuple[list[str], int | None]:
        found: list[str] = []

        async def listen(messages: Sequence[ReceivedMessage]) -> None:
            found.extend(message.body.decode() for message in messages)

        queue = await send(world, "apple", "berry")
        async with filtering(world):
            consumer = PushConsumer(world.session, "G", listen)
            await consumer.subscribe("T", FUNCTION)
            async with consumer:
                await asyncio.sleep(5)
                for body in ("cherry", "almond", "date"):
                    assert isinstance(await world.producer.send(new_message("T", body.encode()), queue), Sent)
                await asyncio.sleep(20)
        return found, await world.consumer.committed(queue)

    assert play(scenario) == (["apple", "almond"], 5)


async def _received(world: World, second: MessageSelector) -> list[str]:
    """Pull until the function fails, then go on from there with a second one."""
    found: list[str] = []
    offset = 0
    queue = await send(world, "apple", "cherry", "berry", "almond")
    async with filtering(world):
        await topic_queues(world.session, "T")
        for selector in (FAILS_AT_B, second):
            with suppress(RefusalError):
                while offset < 4:
                    result = await world.consumer.pull(queue, offset, tags=selector)
                    found += [stored.message.body.decode() for stored in result.messages]
                    offset = result.next_offset
    return found


SELECTED = [(FUNCTION, ["apple", "cherry", "almond"]), (ALL, ["apple", "cherry", "berry", "almond"])]
"""What is received if the second function rejects the message at which the first one fails, or selects it."""


@pytest.mark.parametrize(("second", "expected"), SELECTED)
def test_a_failure_of_a_function_skips_no_message_and_selects_none(
    second: MessageSelector, expected: list[str]
) -> None:
    assert play(partial(_received, second=second)) == expected


def test_a_function_that_fails_stops_the_consumer_exactly_at_its_message() -> None:
    async def scenario(world: World) -> tuple[list[str], int, str]:
        queue = await send(world, "apple", "cherry", "berry", "almond")
        async with filtering(world):
            await topic_queues(world.session, "T")
            first = await world.consumer.pull(queue, 0, tags=FAILS_AT_B)
            with pytest.raises(RefusalError) as caught:
                await world.consumer.pull(queue, first.next_offset, tags=FAILS_AT_B)
            return (
                [stored.message.body.decode() for stored in first.messages],
                first.next_offset,
                str(caught.value),
            )

    bodies, next_offset, said = play(scenario)
    assert (bodies, next_offset) == (["apple", "cherry"], 2)
    assert f"function {FAILS_AT_B.expression} failed" in said
    assert "offset 2 or after: wasm trap: all fuel consumed" in said


def test_without_a_filter_server_a_consumer_with_a_function_receives_nothing() -> None:
    async def scenario(world: World) -> tuple[str, str]:
        queue = await send(world, "apple", "berry")
        with pytest.raises(ClientError) as before:
            await world.consumer.pull(queue, 0, tags=FUNCTION)
        async with filtering(world):
            assert await pulled(world, queue) == ["apple"]
        await asyncio.sleep(1)  # its connection ends, and the broker registers without it
        await topic_queues(world.session, "T")
        with pytest.raises(ClientError) as after:
            await world.consumer.pull(queue, 0, tags=FUNCTION)
        return str(before.value), str(after.value)

    for said in play(scenario):
        assert "has no filter server" in said


def test_a_filter_server_registers_again_at_a_broker_that_restarts() -> None:
    async def scenario(world: World) -> list[str]:
        world.config = replace(world.config, port=7000)
        await world.stop_broker()
        await world.start_broker()
        queue = await send(world, "apple", "berry")
        async with filtering(world) as server:
            await world.stop_broker()
            await asyncio.sleep(REGISTER_S + 1)
            lost = not server.is_registered
            await world.start_broker()
            await asyncio.sleep(REGISTER_S + 1)
            assert lost
            assert server.is_registered
            return await pulled(world, queue)

    assert play(scenario) == ["apple"]


async def ask(world: World, address: Address, request: Command) -> Command:
    return await world.session.remoting.invoke(address, request, 5.0)


def test_an_upload_must_have_the_name_of_its_module_and_be_acceptable() -> None:
    async def scenario(world: World) -> list[tuple[int, str | None]]:
        config = FilterServerConfig(world.broker_address, limits=Limits(module_bytes_max=1000))
        server = FilterServer(config, world.runtime)
        address = await server.start()
        found = []
        good = module(STARTS_WITH_A)
        for name, body in (("f" * 64, good), (function_name(b"x"), b"x"), (function_name(good), good)):
            fields = headers.write(RegisterFunctionRequest("G", "T", name))
            request = new_request(RequestCode.REGISTER_MESSAGE_FILTER_CLASS, fields, body)
            answer = await ask(world, address, request)
            found.append((answer.code, answer.remark))
        other = await ask(world, address, new_request(RequestCode.GET_BROKER_CONFIG))
        await server.stop()
        return [*found, (other.code, other.remark)]

    wrong_name, no_module, good, other = play(scenario)
    assert wrong_name[0] == no_module[0] == ResponseCode.SYSTEM_ERROR
    assert "but the SHA-256 of its module is" in (wrong_name[1] or "")
    assert "binary form" in (no_module[1] or "")
    assert good[0] == ResponseCode.SUCCESS
    assert other[0] == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@pytest.mark.parametrize("name", ["consumerGroup", "topic", "className"])
def test_an_upload_with_a_field_beyond_its_limit_is_refused_by_name(name: str) -> None:
    async def scenario(world: World) -> Command:
        server = FilterServer(FilterServerConfig(world.broker_address), world.runtime)
        address = await server.start()
        fields = {"consumerGroup": "G", "topic": "T", "className": "f" * 64, name: "x" * 40_000}
        request = new_request(RequestCode.REGISTER_MESSAGE_FILTER_CLASS, fields, b"x")
        answer = await ask(world, address, request)
        await server.stop()
        return answer

    answer = play(scenario)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert f"`$.{name}`" in (answer.remark or "")


def test_a_pull_without_a_function_is_refused() -> None:
    async def scenario(world: World) -> Command:
        server = FilterServer(FilterServerConfig(world.broker_address), world.runtime)
        address = await server.start()
        header = headers.PullRequest("G", "T", 0, 0, 32, headers.PULL_HAS_SUBSCRIPTION, 0, 0, 0, "*")
        answer = await ask(world, address, new_request(RequestCode.PULL_MESSAGE, headers.write(header)))
        await server.stop()
        return answer

    answer = play(scenario)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "a filter server serves only pulls with a function"


def test_a_broker_has_no_filter_servers_by_default_and_only_valid_ones() -> None:
    async def scenario(world: World) -> tuple[Command, Command]:
        assert world.broker is not None
        assert world.broker.services is not None
        fields = headers.write(RegisterFilterServerRequest("nowhere"))
        request = new_request(RequestCode.REGISTER_FILTER_SERVER, fields)
        invalid = await ask(world, world.broker_address, request)
        world.broker.services.config = replace(world.broker.services.config, filter_servers=False)
        return invalid, await ask(world, world.broker_address, request)

    invalid, off = play(scenario)
    assert "nowhere" in (invalid.remark or "")
    assert invalid.code == off.code == ResponseCode.SYSTEM_ERROR
    assert "filterServerEnable is false" in (off.remark or "")
    assert not CONFIG.filter_servers


def test_a_consumer_needs_its_own_permissions_through_a_filter_server() -> None:
    loop = SimulatedLoop()

    async def main() -> tuple[list[bytes], str, bool]:
        world = World(loop, config=replace(CONFIG, filter_servers=True, acl_enabled=True))
        write_durably(world.disk, PATH, TEXT.encode())
        async with world:
            stranger = FilterServer(FilterServerConfig(world.broker_address), world.runtime)
            await stranger.start()
            accepted = stranger.is_registered
            await stranger.stop()
            server = FilterServer(FilterServerConfig(world.broker_address), world.runtime, ADMIN)
            await server.start()
            assert server.is_registered
            async with (
                Session([world.namesrv_address], world.runtime, credentials=ORDERS) as reader,
                Session([world.namesrv_address], world.runtime, credentials=None) as nobody,
            ):
                producer = type(world.producer)(reader)
                sent = await producer.send(new_message("T", b"apple"))
                assert isinstance(sent, Sent)
                await asyncio.sleep(1)
                await topic_queues(reader, "T")
                await topic_queues(nobody, "T")
                result = await PullConsumer(reader, "G").pull(sent.queue, 0, tags=FUNCTION)
                with pytest.raises(RefusalError) as caught:
                    await PullConsumer(nobody, "G").pull(sent.queue, 0, tags=FUNCTION)
            await server.stop()
            return [stored.message.body for stored in result.messages], str(caught.value), accepted

    bodies, said, accepted = run_simulated(main(), loop)
    assert bodies == [b"apple"]
    assert "no access key" in said
    assert not accepted
