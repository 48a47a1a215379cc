"""The threads that run a listener that is a plain function: as many as the consumer may call it at once.

The pool of the event loop is not used. It has few threads on a machine with few cores, and other blocking
calls of the process use it too.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mqproof.impl.runtime.runtime import Runtime

T = TypeVar("T")


class ListenerThreads:
    """A pool of threads that begins with the first call. In a simulation, calls go to its own offload."""

    def __init__(self, runtime: Runtime, size: int) -> None:
        self._runtime = runtime
        self._size = size
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Run the call in a thread, and return its result."""
        if not self._runtime.has_threads:
            return await self._runtime.offload(function)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._size, "mqproof-listener")
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def resize(self, size: int) -> None:
        """Use this many threads from now on. Calls that have begun end in the threads they have."""
        if size != self._size:
            self.close()
            self._size = size

    def close(self) -> None:
        """End the threads when their calls have returned. Does not wait for them."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None
