"""The loop of a simulated run, its background tasks, and their failures."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, Final

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.fuzz.target import Finding
from mqproof.impl.runtime.simulated_disk import SimulatedCrashError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated

_FAULT: Final = "fault"


class Background:
    """Runs a program, and collects the failures of its tasks. The first failure is the one that counts."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.failures: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, play: Coroutine[Any, Any, None]) -> None:
        """Run to the end. Raises Finding, or any unexpected exception of a background task."""
        self.loop.set_exception_handler(self._surprised)
        gc.disable()  # almost every object lives until the run ends, so collection finds little
        try:
            with expected_warnings("mqproof.impl", "asyncio"):
                run_simulated(play, self.loop)
        except Finding as finding:
            self.failures.append(finding)
        finally:
            gc.enable()
        if self.failures:  # the first one: the others may be consequences of it
            raise self.failures[0]

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine as a background task."""
        self._begin(asyncio.create_task(work))

    def inject(self, fault: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine of a fault as a background task until `end_faults`."""
        self._begin(asyncio.create_task(fault, name=_FAULT))

    def end_faults(self) -> None:
        """Cancel the tasks that inject faults."""
        for task in list(self._tasks):
            if task.get_name() == _FAULT:
                task.cancel()

    def _begin(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.failures.append(error)

    def _surprised(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not isinstance(error, SimulatedCrashError | OSError):
            self.failures.append(error)
