"""Simulated machines: their processes start and stop one after the other."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import closing

import pytest

from mqproof.conformance.hosts.simulated import MASTER, SLAVE, Cluster, Fsync, Setup
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.errors import StoreError


def _play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        cluster = Cluster(loop, 1, Setup())
        await cluster.start_all()
        await scenario(cluster)

    run_simulated(main(), loop)


def test_a_broker_whose_disk_fails_between_recovery_and_start_does_not_serve() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.kill(SLAVE)
        recovered: list[str] = []
        cluster.on_recovered = recovered.append

        def on_step(step: Step) -> None:
            if step.path.endswith("abort"):
                raise OSError("the disk failed")

        cluster.machines[SLAVE].disk.on_step = on_step
        with pytest.raises(StoreError):
            await cluster.start(SLAVE)
        assert not cluster.is_serving(SLAVE)
        assert not recovered
        cluster.machines[SLAVE].disk.on_step = None
        await cluster.start(SLAVE)
        assert recovered == [SLAVE]
        assert cluster.is_serving(SLAVE)

    _play(scenario)


def test_stopping_a_broker_waits_until_it_has_started() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.kill(MASTER)
        cluster.internet.cut(link for node in ("names-1", "names-2") for link in cluster.links(MASTER, node))
        starting = asyncio.create_task(cluster.start(MASTER))  # its name servers do not answer
        assert await cluster.until(lambda: cluster.is_serving(MASTER), 10)
        assert not starting.done()
        await cluster.stop(MASTER)
        assert starting.done()
        assert MASTER not in cluster.brokers

    _play(scenario)


def test_starting_a_broker_waits_until_it_has_stopped() -> None:
    async def scenario(cluster: Cluster) -> None:
        before = cluster.brokers[MASTER]
        stopping = asyncio.create_task(cluster.stop(MASTER))
        await asyncio.sleep(0)
        await cluster.start(MASTER)
        assert stopping.done()
        assert cluster.brokers[MASTER] is not before
        assert cluster.is_serving(MASTER)

    _play(scenario)


def test_a_paused_broker_is_silent_and_killed_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        broker = cluster.brokers[MASTER]
        cluster.pause(MASTER)
        count = len(cluster.events)
        await asyncio.sleep(60)
        assert len([event for event in cluster.events[count:] if event.node == MASTER]) == 0
        cluster.kill(MASTER)
        assert not cluster.is_paused(MASTER)
        await cluster.start(MASTER)
        assert cluster.brokers[MASTER] is not broker
        assert await cluster.until(cluster.has_caught_up, 60)

    _play(scenario)


def test_an_interrupt_in_a_disk_call_is_no_failure_of_the_disk() -> None:
    """SIGTERM and Ctrl-C raise KeyboardInterrupt in whatever code runs."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    async def ignores_the_result() -> None:
        _ = Fsync(random.Random(0))(interrupted)
        await asyncio.sleep(1)

    with closing(SimulatedLoop()) as loop:
        task = loop.create_task(ignores_the_result())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(task)
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
