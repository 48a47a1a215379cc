"""An event loop whose time jumps to the next timer: the same code, no waiting, the same run each time.

Processes of a simulation share the loop. What is begun in the context of one (`context_of`) belongs to it,
with all that it sets off: such a process can be stopped for a while, as by SIGSTOP.
"""

import asyncio
import heapq
import selectors
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
_Ts = TypeVarTuple("_Ts")

EPOCH_US: Final = 1_700_000_000_000_000
"""The wall-clock time at which every simulation begins, unless told otherwise."""

_CANCELLED_MAX: Final = 100
"""Timers that were cancelled and are kept among those that were not: so many, or half of all."""

_PROCESS: Final[ContextVar[str]] = ContextVar("process", default="")
"""The process that does what is done now; empty of whatever is no process."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in the order of asyncio, and jumps over the time between them.

    Sockets, threads and signals do not belong in it: whatever waits for one of them is stuck, and StuckError
    says so. So nothing is asked of the system between two callbacks.
    """

    # asyncio's own: what is to be called now, in its order.
    _ready: deque[asyncio.Handle]
    _closed: bool
    _stopping: bool

    def __init__(self) -> None:
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        """A heap: when each is due, and its number, for those that are due together."""
        self._timers_set = 0
        self._timers_cancelled = 0
        """Of those in the heap."""
        self._stopped: dict[str, list[asyncio.Handle]] = {}
        """What stopped processes would have done by now, in its order."""
        super().__init__(_NoFiles())

    def time(self) -> float:
        return self._now_s

    # -- what asyncio's loop does

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return timer

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        self._timers_cancelled += 1
        if self._timers_cancelled > max(_CANCELLED_MAX, len(self._timers) // 2):
            self._timers = [each for each in self._timers if not each[2].cancelled()]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    def _run_once(self) -> None:
        """Call what is ready, and what becomes ready by it; when nothing is, let the time pass first, until
        the next timer is due."""
        ready = self._ready
        if not ready and not self._stopping:
            self._pass_time()
        while ready and not self._stopping:
            handle = ready.popleft()
            if handle.cancelled():
                continue
            if self._stopped and (later := self._stopped.get(_process_of(handle))) is not None:
                later.append(handle)
            else:
                handle._run()

    def _pass_time(self) -> None:
        """All timers that are due next are ready now."""
        while self._timers and self._timers[0][2].cancelled():
            self._next_timer()
            self._timers_cancelled -= 1
        if not self._timers:
            raise StuckError("nothing is ready and no timer is set; something waits for what cannot happen")
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            self._ready.append(self._next_timer())

    def _next_timer(self) -> asyncio.TimerHandle:
        """Taken out of the heap."""
        _, _, timer = heapq.heappop(self._timers)
        timer._scheduled = False  # type: ignore[attr-defined]
        return timer

    # -- processes

    def context_of(self, process: str) -> Context:
        """For what that process begins."""
        context = copy_context()
        context.run(_PROCESS.set, process)
        return context

    def stop_process(self, process: str) -> None:
        """From now on nothing of it runs (SIGSTOP), but what it is doing just now."""
        self._stopped.setdefault(process, [])

    def continue_process(self, process: str) -> None:
        """It does at once what it would have done meanwhile, in that order (SIGCONT)."""
        self._ready.extendleft(reversed(self._stopped.pop(process, ())))

    def continue_all(self) -> None:
        for process in list(self._stopped):
            self.continue_process(process)

    def is_stopped(self, process: str) -> bool:
        return process in self._stopped


def _process_of(handle: asyncio.Handle) -> str:
    context: Context = handle._context  # type: ignore[attr-defined]
    return context.get(_PROCESS, "")


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


class _NoFiles(selectors.BaseSelector):
    """Keeps what the loop registers, and is never asked what of it is ready."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, _descriptor(fileobj), events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        raise NotImplementedError

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())
