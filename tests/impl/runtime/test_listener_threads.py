"""Tests that as many calls run at once as the pool has threads."""

import asyncio
import threading
from dataclasses import replace

from mqproof.impl.runtime.listener_threads import ListenerThreads
from mqproof.impl.runtime.network import AsyncioNetwork
from mqproof.impl.runtime.runtime import Runtime, inline, production


def started_at_once(threads: ListenerThreads, calls: int, expected: int) -> int:
    """Start calls that wait for each other; return how many ran at the same time."""
    running, most = 0, 0
    lock, enough, release = threading.Lock(), threading.Event(), threading.Event()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == expected:
                enough.set()
        release.wait(60)
        with lock:
            running -= 1

    async def main() -> None:
        tasks = [asyncio.create_task(threads.run(call)) for _ in range(calls)]
        await asyncio.to_thread(enough.wait, 60)
        release.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    return most


def test_as_many_calls_run_at_once_as_the_pool_has_threads_also_after_a_change() -> None:
    threads = ListenerThreads(production(AsyncioNetwork()), 64)
    assert started_at_once(threads, 70, 64) == 64
    threads.resize(3)
    assert started_at_once(threads, 9, 3) == 3
    threads.close()


def test_a_simulation_uses_its_own_offload() -> None:
    runtime: Runtime = replace(production(AsyncioNetwork()), offload=inline, has_threads=False)
    name = asyncio.run(ListenerThreads(runtime, 2).run(lambda: threading.current_thread().name))
    assert name == threading.current_thread().name
