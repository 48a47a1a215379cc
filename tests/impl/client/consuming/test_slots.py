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


def test_a_free_slot_is_not_lost_with_the_task_that_is_cancelled_as_it_becomes_free() -> None:
    async def main() -> bool:
        slots = Slots(1)
        entered = asyncio.Event()

        async def wait_for_a_slot() -> None:
            async with slots:
                entered.set()

        async with slots:
            cancelled, other = (asyncio.create_task(wait_for_a_slot()) for _ in range(2))
            await asyncio.sleep(1)
        cancelled.cancel()  # after it was notified, before it runs
        await asyncio.wait([other], timeout=1)
        await asyncio.gather(cancelled, return_exceptions=True)
        is_other_done = other.done()
        other.cancel()
        return is_other_done

    assert run_simulated(main(), SimulatedLoop())


def test_a_task_in_a_slot_counts_after_the_limit_was_lowered() -> None:
    async def main() -> list[int]:
        slots, entered = Slots(2), list[int]()

        async def task(number: int) -> None:
            async with slots:
                entered.append(number)
                await asyncio.sleep(number)

        tasks = [asyncio.create_task(task(number)) for number in (5, 1, 1, 1)]
        await asyncio.sleep(0.5)
        await slots.resize(1)
        await asyncio.sleep(3.5)
        assert entered == [5, 1]  # the first one is still in its slot
        await slots.resize(2)
        await asyncio.sleep(0.5)
        assert entered == [5, 1, 1]
        await asyncio.gather(*tasks)
        return entered

    assert run_simulated(main(), SimulatedLoop()) == [5, 1, 1, 1]
