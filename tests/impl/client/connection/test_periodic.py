"""Tests a periodic task: it continues after every failure."""

import asyncio

import pytest

from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.runtime.simulated_loop import run_simulated


def test_a_task_is_repeated_even_after_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    times_s: list[float] = []

    async def work() -> None:
        times_s.append(asyncio.get_running_loop().time())
        if len(times_s) == 2:
            raise RuntimeError("injected")

    async def main() -> None:
        task = asyncio.create_task(repeat(work, 10, first_s=1))
        await asyncio.sleep(35)
        task.cancel()

    run_simulated(main())
    assert times_s == [1, 11, 21, 31]
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("ERROR", "a task that runs every 10 s failed")
    assert "injected" in caplog.text


def test_without_a_first_pause_the_task_runs_after_its_interval() -> None:
    times_s: list[float] = []

    async def work() -> None:
        times_s.append(asyncio.get_running_loop().time())

    async def main() -> None:
        tasks = [asyncio.create_task(repeat(work, 10)), asyncio.create_task(repeat(work, 9, first_s=0))]
        await asyncio.sleep(15)
        for task in tasks:
            task.cancel()

    run_simulated(main())
    assert times_s == [0, 9, 10]
