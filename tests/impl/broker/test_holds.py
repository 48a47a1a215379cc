"""Long polls: who is woken by what, and when time runs out."""

import asyncio

from impl.broker.holds import PullHolds
from impl.runtime.simulated_loop import run_simulated


async def waited_s(holds: PullHolds, offset: int, tags: frozenset[int] = frozenset()) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await holds.wait("T", 0, offset, tags, 15.0)
    return loop.time() - began


def test_a_message_at_the_offset_wakes_at_once_and_an_older_one_or_another_queue_does_not() -> None:
    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 5))
        await asyncio.sleep(1)
        holds.arrived("T", 0, 5, 0)  # the message at 4
        holds.arrived("T", 1, 9, 0)
        holds.arrived("U", 0, 9, 0)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 6, 0)  # the message at 5
        return await waiting

    assert run_simulated(main()) == 2


def test_only_a_wanted_tag_wakes() -> None:
    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0, frozenset({7})))
        await asyncio.sleep(1)
        holds.arrived("T", 0, 1, 8)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 2, 7)
        return await waiting

    assert run_simulated(main()) == 2


def test_when_time_runs_out_the_hold_ends() -> None:
    assert run_simulated(waited_s(PullHolds(), 0)) == 15


def test_closing_wakes_all_and_nobody_is_held_after() -> None:
    async def main() -> tuple[float, float]:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        holds.close()
        return await waiting, await waited_s(holds, 0)

    assert run_simulated(main()) == (1, 0)


def test_the_number_of_holds_is_bounded_and_ended_holds_do_not_count() -> None:
    async def main() -> list[bool]:
        holds = PullHolds(holds_max=2)
        waiting = [asyncio.create_task(waited_s(holds, 0)) for _ in range(2)]
        await asyncio.sleep(1)
        full = [holds.is_full]
        holds.arrived("T", 0, 1, 0)
        await asyncio.gather(*waiting)
        return [*full, holds.is_full]

    assert run_simulated(main()) == [True, False]
