"""Tests long polls: the events that wake a held pull, and its timeout."""

import asyncio

from mqproof.impl.broker.long_polling import PullHolds
from mqproof.impl.runtime.simulated_loop import run_simulated


async def waited_s(
    holds: PullHolds, offset: int, tags: frozenset[int] = frozenset(), owner: object = None
) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await holds.hold("T", 0, offset, tags, 15.0, owner)
    return loop.time() - began


def test_only_a_message_of_the_queue_at_the_offset_or_later_wakes_a_hold() -> None:
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


def test_only_a_wanted_tag_wakes_a_hold() -> None:
    async def main() -> float:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0, frozenset({7})))
        await asyncio.sleep(1)
        holds.arrived("T", 0, 1, 8)
        await asyncio.sleep(1)
        holds.arrived("T", 0, 2, 7)
        return await waiting

    assert run_simulated(main()) == 2


def test_a_message_in_the_same_turn_of_the_loop_is_not_missed() -> None:
    async def main() -> float:
        holds = PullHolds()
        began = asyncio.get_running_loop().time()
        woken = holds.hold("T", 0, 0, (), 15.0)
        holds.arrived("T", 0, 1, 0)
        await woken
        return asyncio.get_running_loop().time() - began

    assert run_simulated(main()) == 0


def test_a_check_wakes_holds_with_a_message_at_their_offset_whatever_its_tag() -> None:
    async def main() -> list[float]:
        holds = PullHolds()
        waiting = [asyncio.create_task(waited_s(holds, offset, frozenset({7}))) for offset in (4, 5)]
        await asyncio.sleep(1)
        holds.check(lambda topic, queue_id: 5 if (topic, queue_id) == ("T", 0) else 0)
        return await asyncio.gather(*waiting)

    assert run_simulated(main()) == [1, 15]


def test_a_disconnected_client_is_no_longer_held() -> None:
    async def main() -> tuple[list[float], int]:
        holds = PullHolds()
        waiting = [asyncio.create_task(waited_s(holds, 0, owner=owner)) for owner in ("a", "a", "b")]
        await asyncio.sleep(1)
        holds.drop("a")
        holds.drop("unknown")
        left = len(holds)
        return await asyncio.gather(*waiting), left

    assert run_simulated(main()) == ([1, 1, 15], 1)


def test_a_cancelled_wait_is_released_after_its_time() -> None:
    async def main() -> int:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.sleep(15)
        return len(holds)

    assert run_simulated(main()) == 0


def test_a_hold_ends_after_its_time() -> None:
    assert run_simulated(waited_s(PullHolds(), 0)) == 15


def test_closing_wakes_all_holds_and_accepts_no_more() -> None:
    async def main() -> tuple[float, float]:
        holds = PullHolds()
        waiting = asyncio.create_task(waited_s(holds, 0))
        await asyncio.sleep(1)
        holds.close()
        return await waiting, await waited_s(holds, 0)

    assert run_simulated(main()) == (1, 0)


def test_the_number_of_holds_is_limited_and_ended_holds_do_not_count() -> None:
    async def main() -> list[bool]:
        holds = PullHolds(holds_max=2)
        waiting = [asyncio.create_task(waited_s(holds, 0)) for _ in range(2)]
        await asyncio.sleep(1)
        full = [holds.is_full]
        holds.arrived("T", 0, 1, 0)
        await asyncio.gather(*waiting)
        return [*full, holds.is_full]

    assert run_simulated(main()) == [True, False]
