"""The simulated loop on which a target takes its steps. Time passes only while a step waits for it."""

from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from mqproof.conformance.faults.expected_warnings import expected_warnings
from mqproof.conformance.subjects.stepped.delayed_requests import all_ended
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_loop import SimulatedLoop

T = TypeVar("T")


class StepLoop:
    """A loop, and the runtime of clients on it. Warnings of `quiet` are not logged until it is closed."""

    def __init__(self, *quiet: str) -> None:
        self._quiet = ExitStack()
        for name in quiet:
            self._quiet.enter_context(expected_warnings(name))
        self.loop = SimulatedLoop()
        self.runtime = simulated(self.loop, SimulatedNetwork())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @property
    def now_s(self) -> float:
        return self.loop.time()

    def close(self) -> None:
        """End what still waits for an answer, and close the loop."""
        with self._quiet:
            self.run(all_ended())
            self.loop.close()
