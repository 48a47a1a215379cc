"""Supervises the tasks that must live as long as their server.

A server whose flush, replication or scan has ended still accepts connections, but it no longer does what it
promises. So an unexpected error in such a task ends the process: `Supervisor` logs it with its traceback, the
server is no longer ready, and `serving.until_signal` stops all servers and raises TaskFailedError.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NoReturn, ParamSpec

P = ParamSpec("P")

_log = logging.getLogger(__name__)


class TaskFailedError(Exception):
    """A task that must live as long as its server ended with an unexpected error."""


class Supervisor:
    """The supervised tasks of one process. It is ready until one of them fails."""

    def __init__(self) -> None:
        self.failure: TaskFailedError | None = None
        """The first failure of a task."""
        self.failures = 0
        """The number of failures."""
        self.on_failure: Callable[[BaseException], None] = lambda _: None
        """Called with each failure. Simulations use it, because no process of theirs can end."""
        self._error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_ready(self) -> bool:
        return self.failure is None

    @property
    def running(self) -> frozenset[str]:
        """The names of the tasks that run now."""
        return frozenset(task.get_name() for task in self._tasks)

    def run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run the work as a task, and supervise it. The name appears in the log.

        The task may return or be cancelled; any other error is a failure.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def guarded(self, name: str, callback: Callable[P, None]) -> Callable[P, None]:
        """Return the callback for an event loop, supervised: an error in it is a failure of the task."""
        return partial(self._call, name, callback)

    def fail(self, name: str, error: BaseException) -> None:
        """Record that a task failed: log the traceback, and wake those that wait in `failed`."""
        _log.critical("the task %r failed, this process stops", name, exc_info=error)
        self.failures += 1
        if self.failure is None:
            self.failure = TaskFailedError(f"the task {name!r} failed: {type(error).__name__}: {error}")
            self._error = error
        self.on_failure(error)
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def failed(self) -> NoReturn:
        """Wait until a task fails, and raise its TaskFailedError."""
        if self.failure is None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                self._waiting.remove(waiting)
        raise self.failure or TaskFailedError("a task failed") from self._error

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(task.get_name(), error)

    def _call(self, name: str, callback: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            callback(*args, **kwargs)
        except Exception as error:  # whatever it is, the work of this task is no longer done
            self.fail(name, error)
