"""Tests a wall clock that is set back or forward: every wait has its intended duration.

Sources: docs/reference/protocol/index.md, "Clocks"; docs/reference/protocol/pulling.md, "Pull requests";
docs/reference/protocol/groups.md, "Client registration" and "Queue locks";
docs/reference/protocol/name-server.md, "Name server".
"""

import asyncio

import pytest

from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import ClusterInfo, LockedQueues, MessageQueue, QueueLocks
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.runtime.simulated_loop import SimulatedClock
from tests.impl.broker.processors.test_groups import Client
from tests.impl.broker.processors.test_pull import pull
from tests.impl.broker.processors.test_send import send
from tests.impl.world import World, play

HOUR_S = 3600


def step(world: World, seconds: int) -> None:
    assert isinstance(world.runtime.clock, SimulatedClock)
    world.runtime.clock.skew_us += seconds * 1_000_000


@pytest.fixture(params=[-HOUR_S, HOUR_S, -400 * 24 * HOUR_S])
def step_s(request: pytest.FixtureRequest) -> int:
    value: int = request.param
    return value


def test_a_pull_is_held_for_the_requested_time_despite_clock_changes(step_s: int) -> None:
    async def scenario(world: World) -> tuple[int, float]:
        await send(world)
        began = asyncio.get_running_loop().time()
        holding = asyncio.create_task(pull(world, queueOffset=1, sysFlag=6, suspendTimeoutMillis=15_000))
        await asyncio.sleep(1)
        step(world, step_s)
        return (await holding).code, asyncio.get_running_loop().time() - began

    code, seconds = play(scenario)
    assert code == ResponseCode.PULL_NOT_FOUND
    assert seconds == pytest.approx(15, abs=0.01)


def test_only_silent_clients_are_removed_despite_clock_changes(step_s: int) -> None:
    async def scenario(world: World) -> None:
        heard, silent = Client(world, "c1"), Client(world, "c2")
        await asyncio.gather(heard.beat("G"), silent.beat("G"))
        assert world.broker is not None
        assert world.broker.services is not None
        clients = world.broker.services.clients
        step(world, step_s)
        for _ in range(4):
            await asyncio.sleep(25)
            await heard.beat("G")
        assert sorted(clients.consumer_ids("G")) == ["c1", "c2"]
        await asyncio.sleep(40)
        assert clients.consumer_ids("G") == ["c1"]
        answer = await world.session.remoting.invoke(
            world.namesrv_address, new_request(RequestCode.GET_BROKER_CLUSTER_INFO), 3.0
        )
        assert list(java_json.read(ClusterInfo, answer.body).broker_addr_table) == ["broker-a"]
        await heard.remoting.close()
        await silent.remoting.close()

    play(scenario)


def test_a_lock_lasts_for_its_lease_despite_clock_changes(step_s: int) -> None:
    async def scenario(world: World) -> list[int]:
        await send(world)
        await Client(world, "c1").beat("G")

        async def locked(client: str) -> int:
            body = java_json.write(QueueLocks(client, "G", [MessageQueue("broker-a", 0, "T")]), standard=True)
            answer = await world.ask(RequestCode.LOCK_BATCH_MQ, body=body)
            return len(java_json.read(LockedQueues, answer.body).lock_ok_mq_set)

        found = [await locked("c1")]
        step(world, step_s)
        await asyncio.sleep(59)
        found.append(await locked("c2"))
        await asyncio.sleep(2)
        return [*found, await locked("c2")]

    assert play(scenario) == [1, 0, 1]


def test_store_timestamps_never_decrease_and_young_messages_do_not_expire(step_s: int) -> None:
    async def scenario(world: World) -> None:
        assert world.broker is not None
        store = world.broker.store
        for number in range(3):
            await send(world, bytes(300_000))  # three records per segment
            await send(world, bytes(300_000))
            if number == 1:
                step(world, step_s)
        times = [store.store_time_ms("T", 0, offset) or 0 for offset in range(6)]
        assert times == sorted(times)
        if step_s < 0:
            assert times[-1] - times[0] < 60_000
            assert await store.clean(manually=True) == 0
        await world.stop_broker()
        await world.start_broker()
        assert world.broker.store.max_offset("T", 0) == 6
        assert (await send(world)).fields["queueOffset"] == "6"

    play(scenario)
