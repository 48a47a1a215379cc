"""Runs work on the event loop of a simulated target, and ends the loop with all of its tasks."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mqproof.conformance.engine.targets import EndlessError, InternalError
from mqproof.conformance.faults.expected_warnings import errors_kept, internal_error
from mqproof.impl.runtime.simulated_loop import LivelockError, StuckError

T = TypeVar("T")


def run(loop: asyncio.AbstractEventLoop, work: Awaitable[T]) -> T:
    """Run the work to its end and return its result.

    Raises:
        EndlessError: the work waits for something that cannot happen, or computes without end.
        InternalError: a task or a callback failed where no caller receives the error.
    """
    with failures_reported():
        return loop.run_until_complete(work)


@contextmanager
def failures_reported() -> Iterator[None]:
    """Raise EndlessError for work without an end, InternalError for errors that no caller receives."""
    try:
        with errors_kept("mqproof.impl"):
            yield
    except (LivelockError, StuckError) as error:
        raise EndlessError(str(error)) from None
    if error_text := internal_error():
        raise InternalError(error_text)


def end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks of the loop, wait until they ended, and close the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_ended(tasks))
    loop.close()


async def _ended(tasks: set[asyncio.Task[object]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
