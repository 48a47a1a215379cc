"""Tests simulated time: it jumps to the next timer without waiting, and reports an endless wait."""

import asyncio
import random
import time

import pytest

from mqproof.impl.runtime import simulated_loop
from mqproof.impl.runtime.clock import SystemClock, now_ms
from mqproof.impl.runtime.runtime import SlowCalls, in_thread, inline
from mqproof.impl.runtime.simulated_loop import (
    EPOCH_US,
    LivelockError,
    ManualClock,
    SimulatedClock,
    SimulatedLoop,
    StuckError,
    run_simulated,
)


def test_an_hour_passes_at_once_and_in_order() -> None:
    log: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        log.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(wait("hour", 3600), wait("second", 1), wait("minute", 60))

    before = time.monotonic()
    run_simulated(main())
    assert time.monotonic() - before < 60
    assert log == [("second", 1.0), ("minute", 60.0), ("hour", 3600.0)]


def test_timeouts_fire_in_simulated_time() -> None:
    async def main() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        except TimeoutError:
            return f"after {asyncio.get_running_loop().time()}"
        return "never"

    assert run_simulated(main()) == "after 5.0"


def test_waiting_for_an_impossible_event_is_an_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    loop = SimulatedLoop()
    task = loop.create_task(main())
    with pytest.raises(StuckError, match="cannot happen"):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


def test_the_simulated_clock_follows_the_loop_and_its_skew() -> None:
    async def main() -> list[int]:
        clock = SimulatedClock(asyncio.get_running_loop())
        start = clock.now_us()
        await asyncio.sleep(2)
        later = clock.now_us()
        clock.skew_us = -5_000_000
        return [start - EPOCH_US, later - EPOCH_US, clock.now_us() - EPOCH_US]

    assert run_simulated(main()) == [0, 2_000_000, -3_000_000]


def test_the_manual_clock_moves_only_on_request() -> None:
    clock = ManualClock()
    clock.advance_ms(7)
    assert now_ms(clock) == EPOCH_US // 1000 + 7
    assert now_ms(SystemClock()) > EPOCH_US // 1000


def test_a_slow_call_lets_others_run_before_and_after_it() -> None:
    async def main() -> list[str]:
        log: list[str] = []

        async def others() -> None:
            for _ in range(40):
                await asyncio.sleep(0.0001)
                log.append("other")

        task = asyncio.create_task(others())
        await SlowCalls(random.Random(1), delay_ms_max=3.0)(lambda: log.append("call"))
        log.append("done")
        await task
        return log

    log = run_simulated(main())
    assert "other" in log[: log.index("call")]
    assert "other" in log[log.index("call") : log.index("done")]


def test_offloads_return_results_and_raise_errors() -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    async def main() -> None:
        for offload in (in_thread, inline):
            assert await offload(lambda: 7) == 7
            with pytest.raises(OSError, match="Input/output"):
                await offload(fail)

    asyncio.run(main())


def test_a_paused_process_does_nothing_and_then_runs_everything_in_order() -> None:
    loop = SimulatedLoop()
    log: list[tuple[str, float]] = []

    async def tick(name: str) -> None:
        for number in range(3):
            await asyncio.sleep(1)
            log.append((f"{name}{number}", loop.time()))

    def later(number: int) -> None:
        log.append((f"timer{number}", loop.time()))

    async def main() -> None:
        stopped = asyncio.create_task(tick("s"), context=loop.context_of("process"))
        other = asyncio.create_task(tick("o"), context=loop.context_of("other"))
        cancelled = loop.call_later(2, later, 0, context=loop.context_of("process"))
        for number in (2, 1):
            loop.call_later(number, later, number, context=loop.context_of("process"))
        await asyncio.sleep(0)
        loop.stop_process("process")
        assert loop.is_stopped("process")
        await other
        cancelled.cancel()
        await asyncio.sleep(7)
        assert log == [("o0", 1.0), ("o1", 2.0), ("o2", 3.0)]
        log.clear()
        loop.continue_process("process")
        await stopped
        assert log == [("timer1", 10.0), ("timer2", 10.0), ("s0", 10.0), ("s1", 11.0), ("s2", 12.0)]

    run_simulated(main(), loop)


def test_waiting_for_a_process_that_is_paused_for_ever_is_an_error() -> None:
    loop = SimulatedLoop()

    async def main() -> None:
        waiting = asyncio.create_task(asyncio.sleep(1), context=loop.context_of("process"))
        loop.stop_process("process")
        await waiting

    with pytest.raises(StuckError):
        run_simulated(main(), loop)


def test_callbacks_that_cause_each_other_without_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "TURNS_MAX", 1000)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    async def spin_for_a_second() -> None:
        async with asyncio.timeout(1):
            await spin()

    with pytest.raises(LivelockError, match="1,000 callbacks"):
        run_simulated(spin_for_a_second())


def test_callbacks_at_many_times_are_no_livelock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "TURNS_MAX", 10)

    async def often() -> int:
        for _ in range(100):
            await asyncio.sleep(0.001)
        return 1

    assert run_simulated(often()) == 1


def test_timers_without_time_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "TURNS_MAX", 1000)

    async def wait_without_end() -> None:
        while True:
            await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=1e-9)

    with pytest.raises(LivelockError, match="1,000 callbacks"):
        run_simulated(wait_without_end())


def test_callbacks_of_several_runs_at_one_time_are_no_livelock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "TURNS_MAX", 30)
    loop = SimulatedLoop()
    for _ in range(100):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_a_callback_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "CALLBACK_CPU_S", 0.02)

    async def compute() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                pytest.fail("the code that never ends must not receive the error")

    with pytest.raises(LivelockError, match=r"0\.02 s of processor time"):
        run_simulated(compute())


def test_many_callbacks_may_use_more_time_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_loop, "CALLBACK_CPU_S", 0.1)

    async def compute() -> None:
        for _ in range(2000):
            sum(range(5000))
            await asyncio.sleep(0)

    run_simulated(compute())
