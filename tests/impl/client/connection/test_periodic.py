"""Repeated work goes on whatever happens to it."""

import asyncio

from mqproof.impl.client.connection.periodic import repeat
from mqproof.impl.runtime.simulated_loop import run_simulated


def test_work_is_repeated_also_after_it_failed() -> None:
    times_s: list[float] = []

    async def work() -> None:
        times_s.append(asyncio.get_running_loop().time())
        if len(times_s) == 2:
            raise RuntimeError("planted")

    async def main() -> None:
        task = asyncio.create_task(repeat(work, 10, first_s=1))
        await asyncio.sleep(35)
        task.cancel()

    run_simulated(main())
    assert times_s == [1, 11, 21, 31]
