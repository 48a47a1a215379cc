"""Tests the stop of a broker: pending requests are answered, and answered messages are kept.

Source: docs/reference/protocol/recovery.md, "Broker shutdown".
"""

import asyncio
from types import SimpleNamespace

import pytest

from mqproof.impl.broker.processors.send import send_message
from mqproof.impl.remoting.channel import ConnectionLostError
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.later import Later
from mqproof.impl.remoting.server import RemotingServer
from mqproof.impl.runtime.disk import read_whole
from mqproof.impl.runtime.network import Address
from tests.impl.broker.processors.test_groups import Client
from tests.impl.broker.processors.test_send import flusher_of, hanging_disk, send, stored
from tests.impl.broker.test_broker import PULL, QUEUE, SEND, altered
from tests.impl.world import World, play


def test_a_send_that_waits_for_a_slow_disk_and_a_held_pull_are_answered() -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        flusher = flusher_of(world)
        offload = flusher._offload

        async def slow(function):  # type: ignore[no-untyped-def]
            await asyncio.sleep(3)
            return await offload(function)

        flusher._offload = slow
        sending = asyncio.create_task(send(world))
        fields = altered(PULL, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000)
        pulling = asyncio.create_task(world.ask_raw(new_request(RequestCode.PULL_MESSAGE, fields)))
        await asyncio.sleep(0.5)
        await world.stop_broker()
        return [(await sending).code, (await pulling).code]

    assert play(scenario) == [ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND]


@pytest.mark.parametrize("timeout_ms", [5000, 20_000])
def test_sends_that_wait_for_a_hanging_disk_are_answered_as_uncertain(timeout_ms: int) -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        await world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"syncFlushTimeout=%d" % timeout_ms)
        with hanging_disk(world):
            sending = [asyncio.create_task(send(world)) for _ in range(2)]
            await asyncio.sleep(0.5)
            stopping = asyncio.create_task(world.stop_broker())
            codes = [(await one).code for one in sending]
        await stopping
        return codes

    assert play(scenario) == [ResponseCode.FLUSH_DISK_TIMEOUT] * 2


def test_a_cancelled_send_does_not_block_the_answers_to_others() -> None:
    async def scenario(world: World) -> tuple[int, int]:
        await send(world)
        assert world.broker is not None
        services = world.broker.services
        assert services is not None
        peer = SimpleNamespace(remote=Address("10.0.0.9", 1))
        request = new_request(RequestCode.SEND_MESSAGE, altered(SEND), b"x")
        with hanging_disk(world):
            given_up, other = (send_message(services, request, peer) for _ in range(2))  # type: ignore[arg-type]
            assert isinstance(given_up, Later)
            assert isinstance(other, Later)
            given_up.cancel()
        answer = await other
        assert answer is not None
        return answer.code, len(services.sends)

    assert play(scenario) == (0, 0)


def test_a_clean_stop_leaves_no_abort_file_and_keeps_every_answered_message() -> None:
    async def scenario(world: World) -> None:
        await send(world, b"kept")
        client = Client(world, "c1")
        await client.beat("G")
        await world.consumer.commit(QUEUE, 1)
        await client.remoting.close()
        assert world.disk.exists("/store/abort")
        await world.stop_broker()
        assert not world.disk.exists("/store/abort")
        world.disk.lose_power()
        assert b'"T@G":{"0":1}' in read_whole(world.disk, "/store/config/consumerOffset.json")
        assert b'"G"' in read_whole(world.disk, "/store/config/subscriptionGroup.json")
        await world.start_broker()
        assert world.broker is not None
        assert world.broker.recovery is not None
        assert not world.broker.recovery.abnormal
        assert [one.message.body for one in stored(world, "T")] == [b"kept"]

    play(scenario)


def test_a_killed_broker_answers_nothing_and_leaves_no_timer() -> None:
    async def scenario(world: World) -> list[object]:
        await send(world)
        assert world.broker is not None
        fields = altered(PULL, queueOffset=2, sysFlag=6, suspendTimeoutMillis=15_000)
        pull = new_request(RequestCode.PULL_MESSAGE, fields)
        with hanging_disk(world):
            asked = [asyncio.create_task(send(world)), asyncio.create_task(world.ask_raw(pull))]
            await asyncio.sleep(0.5)
            assert not any(one.done() for one in asked)
            world.broker.kill()
            world.broker = None
            world.disk.opened.clear()  # the system closes the files of a process
            await asyncio.wait(asked)
        return [type(one.exception()) for one in asked]

    assert play(scenario) == [ConnectionLostError] * 2


def test_a_stop_waits_for_answers_a_second_longer_than_a_flush_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits_s: list[float] = []
    stop = RemotingServer.stop

    async def noted(server: RemotingServer, drain_s: float = 0.0) -> None:
        waits_s.append(drain_s)
        await stop(server, drain_s)

    async def scenario(world: World) -> None:
        with monkeypatch.context() as change:
            change.setattr(RemotingServer, "stop", noted)
            await world.stop_broker()

    play(scenario)
    assert waits_s == [6.0]


def test_a_killed_broker_holds_no_pull_and_does_no_work() -> None:
    async def scenario(world: World) -> None:
        broker = world.broker
        assert broker is not None
        held = broker._holds.hold("T", 0, 0, (), 15.0)
        tasks = list(broker._tasks)
        world.some_died = True
        broker.kill()
        await asyncio.sleep(0)
        assert held.done()
        assert broker._holds.hold("T", 0, 0, (), 15.0).done()
        await asyncio.sleep(0.1)
        assert all(task.cancelled() for task in tasks)
        world.broker = None
        world.disk.opened.clear()

    play(scenario)
