"""An event loop whose time jumps to the next timer: the same code, no waiting, the same run each time.

Processes of a simulation share the loop. What is begun in the context of one (`context_of`) belongs to it,
with all that it sets off: such a process can be stopped for a while, as by SIGSTOP.
"""

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Coroutine, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH_US: Final = 1_700_000_000_000_000
"""The wall-clock time at which every simulation begins, unless told otherwise."""


_PROCESS: Final[ContextVar[str]] = ContextVar("process", default="")
"""The process that does what is done now; empty of whatever is no process."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in the order of asyncio, and jumps over the time between them.

    Sockets, threads and signals do not belong in it: whatever waits for one of them is stuck, and StuckError
    says so.
    """

    # asyncio's own: what is to be called now, in its order, and later, as a heap.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self) -> None:
        self._now_s = 0.0
        self._stopped: dict[str, list[asyncio.Handle]] = {}
        """What stopped processes would have done by now, in its order."""
        super().__init__(_TimeLapse(self))

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass. The loop does it by itself whenever nothing is ready."""
        self._now_s += seconds

    # -- processes

    def context_of(self, process: str) -> Context:
        """For what that process begins."""
        context = copy_context()
        context.run(_PROCESS.set, process)
        return context

    def stop_process(self, process: str) -> None:
        """From the next turn of the loop on nothing of it runs (SIGSTOP)."""
        self._stopped.setdefault(process, [])

    def continue_process(self, process: str) -> None:
        """It does at once what it would have done meanwhile, in that order (SIGCONT)."""
        self._ready.extendleft(reversed(self._stopped.pop(process, ())))

    def continue_all(self) -> None:
        for process in list(self._stopped):
            self.continue_process(process)

    def is_stopped(self, process: str) -> bool:
        return process in self._stopped

    def set_aside(self) -> None:
        """Keep from running what belongs to stopped processes. The loop does it by itself."""
        if not self._stopped:
            return
        now_s, ready, scheduled = self._now_s + self._clock_resolution, self._ready, self._scheduled
        while scheduled and scheduled[0].when() < now_s:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            self._stopped.get(handle._context.get(_PROCESS, ""), ready).append(handle)  # type: ignore[attr-defined]


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
        try:
            return runner.run(main)
        finally:
            chosen.continue_all()  # a stopped process could not be ended


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
        self._loop.set_aside()
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
