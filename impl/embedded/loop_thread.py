"""An event loop in a thread of its own, for callers without an event loop or with another one."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

_STOP_S: Final = 30.0


class LoopThread:
    """Asyncio's own event loop, whose time can be advanced. Its methods may be called from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()

    def start_with(self, start: Coroutine[Any, Any, None]) -> None:
        """Start the thread and run the coroutine in it. If it fails, the thread ends."""
        self.start()
        try:
            self.run(start)
        except BaseException:
            self.end()
            raise

    def end_after(self, stop: Coroutine[Any, Any, None], timeout_s: float = _STOP_S) -> None:
        """Run the coroutine in the thread, then end the thread, even if the coroutine fails.

        Raises:
            TimeoutError: the coroutine did not end in time.
        """
        try:
            self.run(stop, timeout_s)
        finally:
            self.end()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run the coroutine in the thread; block until it ends, and return its result.

        Raises:
            TimeoutError: it did not end in time.
        """
        running = self.submit(work)
        try:
            return running.result(timeout_s)
        except TimeoutError:
            running.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin to run the coroutine in the thread. Returns what its result will be."""
        assert self._loop is not None, "the thread was not started"
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], T]) -> T:
        """Call the function in the thread, and return what it returns."""

        async def call() -> T:
            return function()

        return self.run(call())

    def end(self) -> None:
        """Cancel what still runs, then stop the loop and its thread."""
        assert self._loop is not None, "the thread was not started"
        assert self._thread is not None, "the thread was not started"
        self.run(_cancel_others(), _STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
