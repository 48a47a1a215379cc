"""An event loop whose time jumps to the next timer: code runs without waiting, and each run is the same.

The processes of a simulation share the loop. A callback started in the context of a process (`context_of`)
belongs to that process, and so does everything that it starts. Such a process can be stopped for a while, as
by SIGSTOP.
"""

import asyncio
import heapq
import selectors
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from types import FrameType
from typing import Any, Final, TypeVar, TypeVarTuple

T = TypeVar("T")
_Ts = TypeVarTuple("_Ts")

EPOCH_US: Final = 1_700_000_000_000_000
"""The wall-clock time at which a simulation begins by default."""

_CANCELLED_MAX: Final = 100
"""How many cancelled timers may stay in the heap, unless half of the heap is more."""

TURNS_MAX: Final = 30_000
"""How many callbacks may run within INSTANT_S. More are taken for callbacks that cause each other."""

INSTANT_S: Final = 0.001
"""Timers that are set for less than this time again and again take time, but do not get anywhere."""

CALLBACK_CPU_S: Final = 2.0
"""The processor time that a callback may use. One that uses more is taken for a loop without end."""

_PROCESS: Final[ContextVar[str]] = ContextVar("process", default="")
"""The process that runs now; empty outside all processes."""


class StuckError(RuntimeError):
    """Nothing is ready and no timer is set: the simulation would wait forever."""


class LivelockError(RuntimeError):
    """Callbacks cause each other without end while no time passes, or one callback does not end."""


class _CallbackInterrupt(KeyboardInterrupt):
    """Ends a callback that does not end. Event loops and tasks pass such an exception on."""


class _Call:
    """A callback to call, with asyncio's own names. Its handles also keep what is needed for debugging.

    A simulation makes millions of these, so this class does as little as possible.
    """

    __slots__ = ("_args", "_callback", "_cancelled", "_context")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self._callback = callback
        self._args = args
        self._context = context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = _nothing, ()  # they may be large, and the loop may keep the handle

    def cancelled(self) -> bool:
        return self._cancelled


class _Timer(_Call):
    """A callback to call at a time."""

    __slots__ = ("_loop", "_when")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context,
        loop: "SimulatedLoop",
    ) -> None:
        self._callback = callback
        self._args = args
        self._context = context
        self._cancelled = False
        self._when = when
        self._loop: SimulatedLoop | None = loop
        """The loop whose heap has the timer; None after its time has come."""

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        if self._loop is not None and not self._cancelled:
            self._loop.timer_cancelled()
        self._cancelled = True
        self._callback, self._args = _nothing, ()


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in asyncio's order, and skips the time between them.

    It does not support sockets, threads or signals: a coroutine that waits for one of them raises StuckError.
    The loop therefore makes no system call between two callbacks.
    """

    # Attributes of asyncio's loop; `_ready` has the callbacks to call now, in order.
    _ready: deque[Any]
    _closed: bool
    _stopping: bool

    def __init__(self) -> None:
        self._turns = 0
        """The number of callbacks that ran since `_counted_from_s`."""
        self._counted_from_s = 0.0
        self._now_s = 0.0
        self._timers: list[tuple[float, int, _Timer]] = []
        """A heap of timers: when each is due, and its number, which orders timers that are due together."""
        self._timers_set = 0
        self._timers_cancelled = 0
        """The number of cancelled timers in the heap."""
        self._stopped: dict[str, list[_Call]] = {}
        """The callbacks that wait for each stopped process, in order."""
        super().__init__(_NoFiles())

    def time(self) -> float:
        return self._now_s

    def task_failed(self, error: BaseException) -> None:
        """Report that a supervised task failed: to the exception handler, as for any other task."""
        self.call_exception_handler({"message": "a supervised task failed", "exception": error})

    # -- methods of asyncio's loop

    def run_forever(self) -> None:
        """Run callbacks until the loop is stopped.

        Raises:
            StuckError, LivelockError: the simulation cannot go on.
        """
        self._turns = 0
        try:
            with _callbacks_bounded(lambda: (self._counted_from_s, self._turns)):
                super().run_forever()
        except _CallbackInterrupt as interrupt:
            raise LivelockError(str(interrupt)) from None

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Any:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        call = _Call(callback, args, copy_context() if context is None else context)
        self._ready.append(call)
        return call

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Any:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Any:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = _Timer(when, callback, args, copy_context() if context is None else context, self)
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return timer

    def timers(self) -> list[str]:
        """Return what the timers that are set would call."""
        calls = (timer._callback for _, _, timer in self._timers if not timer._cancelled)
        return sorted(getattr(call, "__qualname__", repr(call)) for call in calls)

    def timer_cancelled(self) -> None:
        """Count a cancelled timer in the heap; remove them all when there are many."""
        self._timers_cancelled += 1
        if self._timers_cancelled > max(_CANCELLED_MAX, len(self._timers) // 2):
            self._timers = [each for each in self._timers if not each[2]._cancelled]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    def _run_once(self) -> None:
        """Call callbacks in order until the loop is stopped.

        Whenever none is ready, advance the time to the next timer.

        Raises:
            StuckError, LivelockError: the simulation cannot go on.
        """
        ready, stopped = self._ready, self._stopped
        while not self._stopping:
            if not ready:
                self._pass_time()
            self._turns += 1
            if self._turns > TURNS_MAX:
                self._turns = 0
                raise LivelockError(
                    f"{TURNS_MAX:,} callbacks ran at the same simulated time, and more are ready"
                )
            call = ready.popleft()
            if call._cancelled:
                continue
            if stopped and (later := stopped.get(_process_of(call))) is not None:
                later.append(call)
                continue
            try:
                call._context.run(call._callback, *call._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler(
                    {"message": f"Exception in callback {call._callback}", "exception": error}
                )

    def _pass_time(self) -> None:
        """Advance the time to the next timer, and make all timers that are due then ready."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._timers_cancelled -= 1
        if not timers:
            raise StuckError(
                "nothing is ready and no timer is set: the simulation waits for an event that cannot happen"
            )
        now_s = timers[0][0]
        if now_s > self._now_s:
            self._now_s = now_s
        else:
            now_s = self._now_s
        if now_s - self._counted_from_s >= INSTANT_S:
            self._counted_from_s, self._turns = now_s, 0
        while timers and timers[0][0] <= now_s:
            _, _, timer = heapq.heappop(timers)
            if timer._cancelled:
                self._timers_cancelled -= 1
            else:
                timer._loop = None
                ready.append(timer)

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


@contextmanager
def _callbacks_bounded(progress: Callable[[], object]) -> Iterator[None]:
    """Raise _CallbackInterrupt in the main thread while the progress stays the same for CALLBACK_CPU_S."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: object = None
    ticks = 0

    def tick(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen, ticks
        seen, before = progress(), seen
        ticks = ticks + 1 if seen == before else 0
        if ticks == 2:
            raise _CallbackInterrupt(
                f"a callback used {CALLBACK_CPU_S:g} s of processor time and did not end"
            )

    before = signal.signal(signal.SIGPROF, tick)
    signal.setitimer(signal.ITIMER_PROF, CALLBACK_CPU_S / 2, CALLBACK_CPU_S / 2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before or signal.SIG_DFL)


def _nothing(*_: object) -> None:
    """Take the place of a callback that was cancelled."""


def _process_of(call: _Call) -> str:
    return call._context.get(_PROCESS, "")


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
