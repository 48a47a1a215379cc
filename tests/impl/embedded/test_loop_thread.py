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
