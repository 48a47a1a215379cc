"""Tests when the background tasks of a store work (docs/reference/protocol/storing.md, "Flush")."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.runtime.supervision import Supervisor
from mqproof.impl.store.background import BackgroundTasks
from mqproof.impl.store.config import FlushMode, StoreConfig
from tests.impl.replication.site import CONFIG, filled


class _Flusher:
    """Counts the flushes of a log with so many unflushed bytes."""

    def __init__(self, unflushed_bytes: int, flush: Callable[[], Awaitable[None]]) -> None:
        self.unflushed_bytes = unflushed_bytes
        self.wanted = asyncio.Event()
        self.flush = flush


def _worked(
    config: StoreConfig, seconds: float, unflushed_bytes: int = 0, *, stops: bool = True
) -> dict[str, list[float]]:
    """Return the times in milliseconds at which each task worked; stop them once more, in another loop."""
    times: dict[str, list[float]] = defaultdict(list)

    async def main() -> BackgroundTasks:
        loop = asyncio.get_running_loop()

        def noted(name: str) -> Callable[[], Awaitable[None]]:
            async def step() -> None:
                times[name].append(round(loop.time() * 1000, 3))

            return step

        tasks = BackgroundTasks(
            config,
            _Flusher(unflushed_bytes, noted("log")),  # type: ignore[arg-type]
            noted("queues"),
            noted("checkpoint"),
            noted("clean"),
            filled(1).scrub,
            Supervisor(),
        )
        tasks.start()
        await asyncio.sleep(seconds)
        if stops:
            await tasks.stop()
        else:
            tasks.kill()
        await asyncio.sleep(60)
        return tasks

    tasks = run_simulated(main(), SimulatedLoop())
    run_simulated(tasks.stop(), SimulatedLoop())
    return times


def test_each_task_works_at_its_interval_and_the_first_checkpoint_is_written_at_once() -> None:
    config = replace(
        CONFIG,
        flush_queues_interval_ms=1000,
        checkpoint_interval_ms=2500,
        clean_interval_ms=1700,
        flush_log_interval_ms=400,
        flush_log_thorough_interval_ms=1600,
        flush_log_least_bytes=100,
    )
    assert _worked(config, 4.0005) == {
        "queues": [0, 1000, 2000, 3000, 4000],
        "checkpoint": [0, 2500],
        "clean": [1700, 3400],
        "log": [1600, 3200],
    }
    assert _worked(config, 1.9, 99)["log"] == [1600]
    assert _worked(config, 1.9, 100)["log"] == [400, 800, 1200, 1600]


def test_a_thorough_interval_below_the_short_one_flushes_each_time() -> None:
    config = replace(CONFIG, flush_log_interval_ms=500, flush_log_thorough_interval_ms=100)
    assert _worked(config, 1.1)["log"] == [500, 1000]


def test_with_sync_flush_a_stop_ends_the_wait_for_a_put() -> None:
    assert _worked(replace(CONFIG, flush_mode=FlushMode.SYNC_FLUSH), 1.1)["log"] == [1100]


@pytest.mark.parametrize("stops", [False, True])
def test_tasks_that_were_stopped_or_killed_work_no_more(stops: bool) -> None:
    worked = _worked(CONFIG, 0.5004, stops=stops)
    assert worked == {"queues": [0], "checkpoint": [0]}
