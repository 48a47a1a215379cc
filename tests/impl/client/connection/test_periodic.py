"""Tests a periodic task: it continues after every failure."""

import asyncio

from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.runtime.simulated_loop import run_simulated


def test_a_task_is_repeated_even_after_it_failed() -> None:
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
