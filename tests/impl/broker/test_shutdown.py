"""A broker that is asked to stop: what is under way is answered, what was answered is kept.

Source: docs/protocol.md, "The end of a broker".
"""

import asyncio

from impl.remoting.channel import ConnectionLostError
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import new_request
from impl.runtime.disk import read_whole
from tests.impl.broker.test_broker import PULL, QUEUE, altered
from tests.impl.broker.test_groups import Client
from tests.impl.broker.test_send import hang, send, stored
from tests.impl.world import World, play


def test_a_send_that_waits_for_a_slow_disk_is_answered_and_a_held_pull_too() -> None:
    async def scene(world: World) -> list[int]:
        await send(world)
        assert world.broker is not None
        flusher = world.broker.store._flusher
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

    assert play(scene) == [ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND]


def test_sends_that_wait_for_a_hanging_disk_do_not_hang_the_end_and_are_not_answered() -> None:
    async def scene(world: World) -> None:
        await send(world)
        released = hang(world)
        assert world.broker is not None
        services = world.broker.services
        assert services is not None
        sending = [asyncio.create_task(send(world)) for _ in range(2)]
        await asyncio.sleep(0.5)
        stopping = asyncio.create_task(world.stop_broker())
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ConnectionLostError] * 2
        assert len(services.sends) == 2
        released.set()
        await stopping
        assert len(services.sends) == 0, "each is told what became of it, whether or not anybody listens"

    play(scene)


def test_a_clean_end_leaves_no_abort_file_and_everything_that_was_answered() -> None:
    async def scene(world: World) -> None:
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

    play(scene)
