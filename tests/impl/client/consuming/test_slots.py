"""Tests that the number of tasks in a slot follows the limit."""

import asyncio

from mqproof.impl.client.consuming.slots import Slots
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated


def test_as_many_tasks_are_in_a_slot_as_the_limit_allows_also_after_a_change() -> None:
    async def main() -> list[int]:
        slots, inside, most = Slots(2), 0, 0
        seen = []

        async def task() -> None:
            nonlocal inside, most
            async with slots:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(1)
                inside -= 1

        for limit in (2, 5, 1):
            most = 0
            await slots.resize(limit)
            await asyncio.gather(*(task() for _ in range(8)))
            seen.append(most)
        return seen

    assert run_simulated(main(), SimulatedLoop()) == [2, 5, 1]
