"""An event loop in a thread runs work for any caller, and ends."""

import asyncio
import threading

import pytest

from mqproof.impl.embedded.loop_thread import LoopThread


def test_work_runs_in_the_thread_and_its_result_or_error_returns() -> None:
    thread = LoopThread("one")
    thread.start()

    async def name() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert thread.run(name()) == thread.call(lambda: threading.current_thread().name) == "one"
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    with pytest.raises(TimeoutError):
        thread.run(asyncio.sleep(3600), timeout_s=0.01)
    thread.end()
    assert not thread.is_alive


def test_the_thread_ends_if_its_server_does_not_start_and_however_it_stops() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    unstarted, failed, slow = (LoopThread(name) for name in ("unstarted", "failed", "slow"))
    with pytest.raises(ZeroDivisionError):
        unstarted.start_with(fail())
    for thread in (failed, slow):
        thread.start_with(asyncio.sleep(0))
        assert thread.is_alive
    with pytest.raises(ZeroDivisionError):
        failed.end_after(fail())
    with pytest.raises(TimeoutError):
        slow.end_after(asyncio.sleep(3600), timeout_s=0.01)
    assert not any(thread.is_alive for thread in (unstarted, failed, slow))
