"""The time of upkeep: what is skipped does not count for it, and what is due is not skipped."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mqproof.impl.runtime import upkeep
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_without_a_skip_it_is_the_time_of_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert upkeep.now_s() == upkeep.now_s(loop) == loop.time()
        called = loop.create_future()
        begun_s = loop.time()
        upkeep.call_at(upkeep.now_s() + 7.0, called.set_result, "called")
        assert await called == "called"
        await upkeep.sleep(3.0)
        await upkeep.after(2.0)
        assert not await upkeep.Wakeup().within(1.0)
        assert loop.time() - begun_s == pytest.approx(13.0)

    run_simulated(main())


def test_skipped_time_does_not_count_for_upkeep_and_counts_for_what_is_due() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        now_s = upkeep.now_s()
        held = upkeep.call_at(now_s + 60, lambda: None)
        due = loop.call_later(3600, lambda: None)
        late = loop.create_task(upkeep.sleep(120))
        await asyncio.sleep(0)
        real_time = loop.time
        upkeep.skip(loop, 3500)
        loop.time = lambda: real_time() + 3500
        assert upkeep.now_s() == pytest.approx(now_s, abs=5)
        assert held.when() - loop.time() == pytest.approx(60, abs=5)
        assert due.when() - loop.time() == pytest.approx(100, abs=5)
        assert upkeep.next_due_s(loop)[0] == pytest.approx(100, abs=5)
        due.cancel()
        assert upkeep.next_due_s(loop)[0] == float("inf")
        later = upkeep.call_at(upkeep.now_s() + 60, lambda: None)
        assert later.when() - loop.time() == pytest.approx(60, abs=5)
        late.cancel()

    run(main)


def test_a_wakeup_ends_a_sleep_early() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        wakeup = upkeep.Wakeup()
        loop.call_later(2.0, wakeup.set)
        assert await wakeup.within(5.0)
        assert await wakeup.within(5.0)
        assert loop.time() == pytest.approx(2.0)
        wakeup.clear()
        assert not await wakeup.within(5.0)
        assert loop.time() == pytest.approx(7.0)

    run_simulated(main(), SimulatedLoop())


def test_what_is_due_ends_a_wait_and_so_does_what_arrives() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        await upkeep.until_due(upkeep.after(100), 5)
        assert loop.time() - begun_s == pytest.approx(5)
        await upkeep.until_due(upkeep.after(1), 500)
        assert loop.time() - begun_s == pytest.approx(6)

    run_simulated(main(), SimulatedLoop())


def test_a_delivery_is_due_and_is_no_timer_of_a_test() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        delivery = asyncio.create_task(upkeep.until_due(upkeep.after(100), 50))
        timer = loop.call_later(70, lambda: None)
        await asyncio.sleep(0)
        assert upkeep.next_due_s(loop) == pytest.approx((50, 70), abs=5)
        timer.cancel()
        assert upkeep.next_due_s(loop)[1] == float("inf")
        delivery.cancel()

    run(main)


def test_upkeep_is_awaited_while_one_block_runs() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert not upkeep.is_awaited(loop)
        with upkeep.awaited():
            with upkeep.awaited():
                pass
            assert upkeep.is_awaited(loop)
        assert not upkeep.is_awaited(loop)

    run(main)
