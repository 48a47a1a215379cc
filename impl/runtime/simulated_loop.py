"""An event loop whose time jumps to the next timer: the same code, no waiting, the same run each time."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH_US: Final = 1_700_000_000_000_000
"""The wall-clock time at which every simulation begins, unless told otherwise."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in the order of asyncio, and jumps over the time between them.

    Sockets, threads and signals do not belong in it: whatever waits for one of them is stuck, and StuckError
    says so.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_TimeLapse(self))

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass. The loop does it by itself whenever nothing is ready."""
        self._now_s += seconds


class SimulatedClock:
    """Wall clock of one simulated node: the loop's time plus the node's own skew, which may be changed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start_us: int = EPOCH_US, skew_us: int = 0) -> None:
        self._loop = loop
        self._start_us = start_us
        self.skew_us = skew_us

    def now_us(self) -> int:
        return self._start_us + self.skew_us + int(self._loop.time() * 1_000_000)


class ManualClock:
    """A wall clock that stands still until told otherwise; for code that runs without an event loop."""

    def __init__(self, now_us: int = EPOCH_US) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def advance_ms(self, milliseconds: int) -> None:
        self._now_us += milliseconds * 1000


def run_simulated(main: Coroutine[Any, Any, T], loop: SimulatedLoop | None = None) -> T:
    """Run the coroutine to its end on a simulated loop of its own (or on the one given, then left closed).

    Raises:
        StuckError: it waits for something that cannot happen.
    """
    chosen = loop or SimulatedLoop()
    with asyncio.Runner(loop_factory=lambda: chosen) as runner:
        return runner.run(main)


class _TimeLapse(selectors.BaseSelector):
    """Selects no file ever; being asked to wait, it lets the loop's time pass instead."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, _descriptor(fileobj), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("nothing is ready and no timer is set; something waits for what cannot happen")
        if timeout > 0:
            self._loop.advance(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
