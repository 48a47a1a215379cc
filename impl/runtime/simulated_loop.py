"""An event loop whose time jumps to the next timer: code runs without waiting, and each run is the same.

The processes of a simulation share the loop. A callback started in the context of a process (`context_of`)
belongs to that process, and so does everything that it starts. Such a process can be stopped for a while, as
by SIGSTOP.
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
"""The wall-clock time at which a simulation begins by default."""

_CANCELLED_MAX: Final = 100
"""How many cancelled timers may stay in the heap, unless half of the heap is more."""

TURNS_MAX: Final = 1_000_000
"""How many callbacks may run while no time passes. More are taken for callbacks that cause each other."""

_PROCESS: Final[ContextVar[str]] = ContextVar("process", default="")
"""The process that runs now; empty outside all processes."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait forever."""


class LivelockError(RuntimeError):
    """Callbacks cause each other without end, and no time passes."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in asyncio's order, and skips the time between them.

    It does not support sockets, threads or signals: a coroutine that waits for one of them raises StuckError.
    The loop therefore makes no system call between two callbacks.
    """

    # Attributes of asyncio's loop; `_ready` has the callbacks to call now, in order.
    _ready: deque[asyncio.Handle]
    _closed: bool
    _stopping: bool

    def __init__(self, turns_max: int | None = None) -> None:
        """Create a loop that takes more than `turns_max` callbacks without time for an endless loop.

        The default is TURNS_MAX.
        """
        self._turns_max = turns_max or TURNS_MAX
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        """A heap of timers: when each is due, and its number, which orders timers that are due together."""
        self._timers_set = 0
        self._timers_cancelled = 0
        """The number of cancelled timers in the heap."""
        self._stopped: dict[str, list[asyncio.Handle]] = {}
        """The callbacks that wait for each stopped process, in order."""
        super().__init__(_NoFiles())

    def time(self) -> float:
        return self._now_s

    def task_failed(self, error: BaseException) -> None:
        """Report that a supervised task failed: to the exception handler, as for any other task."""
        self.call_exception_handler({"message": "a supervised task failed", "exception": error})

    # -- methods of asyncio's loop

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
        """Call the ready callbacks and those that become ready by them.

        If nothing is ready, first advance the time to the next timer.

        Raises:
            StuckError, LivelockError: the simulation cannot go on.
        """
        ready = self._ready
        if not ready and not self._stopping:
            self._pass_time()
        turns = 0
        while ready and not self._stopping:
            turns += 1
            if turns > self._turns_max:
                raise LivelockError(
                    f"{self._turns_max:,} callbacks ran at the same simulated time, and more are ready"
                )
            handle = ready.popleft()
            if handle.cancelled():
                continue
            if self._stopped and (later := self._stopped.get(_process_of(handle))) is not None:
                later.append(handle)
            else:
                handle._run()

    def _pass_time(self) -> None:
        """Advance the time to the next timer, and make all timers that are due then ready."""
        while self._timers and self._timers[0][2].cancelled():
            self._next_timer()
            self._timers_cancelled -= 1
        if not self._timers:
            raise StuckError(
                "nothing is ready and no timer is set: the simulation waits for an event that cannot happen"
            )
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            self._ready.append(self._next_timer())

    def _next_timer(self) -> asyncio.TimerHandle:
        """Remove the next timer from the heap and return it."""
        _, _, timer = heapq.heappop(self._timers)
        timer._scheduled = False  # type: ignore[attr-defined]
        return timer

    # -- processes

    def context_of(self, process: str) -> Context:
        """Return a context for work of that process."""
        context = copy_context()
        context.run(_PROCESS.set, process)
        return context

    def stop_process(self, process: str) -> None:
        """Stop the process (SIGSTOP): nothing of it runs from now on, except the callback that is running."""
        self._stopped.setdefault(process, [])

    def continue_process(self, process: str) -> None:
        """Continue the process (SIGCONT): the callbacks that waited run next, in order."""
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
    """The wall clock of one simulated node: the loop's time plus a skew, which may be changed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start_us: int = EPOCH_US, skew_us: int = 0) -> None:
        self._loop = loop
        self._start_us = start_us
        self.skew_us = skew_us

    def now_us(self) -> int:
        return self._start_us + self.skew_us + int(self._loop.time() * 1_000_000)


class ManualClock:
    """A wall clock that only moves when `advance_ms` is called; for code that runs without an event loop."""

    def __init__(self, now_us: int = EPOCH_US) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def advance_ms(self, milliseconds: int) -> None:
        self._now_us += milliseconds * 1000


def run_simulated(main: Coroutine[Any, Any, T], loop: SimulatedLoop | None = None) -> T:
    """Run the coroutine to its end on the given or a new simulated loop, which is closed afterwards.

    Raises:
        StuckError: the coroutine waits for something that cannot happen.
    """
    chosen = loop or SimulatedLoop()

    with asyncio.Runner(loop_factory=lambda: chosen) as runner:
        try:
            return runner.run(main)
        finally:
            chosen.continue_all()  # a stopped process could not be cancelled


class _NoFiles(selectors.BaseSelector):
    """A selector that stores what the loop registers and is never asked for ready files."""

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
