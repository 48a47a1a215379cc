"""Bounds the time of one example, and that of a suite.

A target that computes or waits without end in one example is a violation. A suite whose budget is used up
ends, whatever the target does, and judges the examples that are finished.

Processor time does not depend on the load of the machine. An example takes some hundredths of a second, so
the bound decides nothing but whether the run ends. An example on a real target mostly waits, for some minutes
at most; the bound on its real time ends the run if a call of the target never returns.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from mqproof.conformance.engine.targets import EndlessError

EXAMPLE_SECONDS_MAX: Final = 15.0
"""The processor time after which a drawn example is ended."""
RUN_SECONDS_MAX: Final = 30.0
"""The processor time after which a simulated run of many operations is ended."""
EXAMPLE_REAL_SECONDS_MAX: Final = 1800.0
"""The real time after which an example is ended."""
SUITE_MINUTES_MAX: Final = 120.0
"""The default of the real time after which a suite is ended."""
_REPEAT_S: Final = 1.0
"""The interval after which code that survived the interruption is interrupted again."""
_MOMENT_S: Final = 0.001
"""A timer that is set to 0 never ends."""
_TIMERS: Final = {
    signal.ITIMER_VIRTUAL: (signal.SIGVTALRM, "an example used up its processor time without an end"),
    signal.ITIMER_REAL: (signal.SIGALRM, "a call of the target did not return"),
}
_replaced: Final[dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None]] = {}
"""The handlers that `start` replaced."""


class OutOfTimeInterrupt(KeyboardInterrupt):
    """The time of an example is used up.

    It is a KeyboardInterrupt because an event loop passes only such exceptions on from a callback.
    """


class BudgetInterrupt(KeyboardInterrupt):
    """The time of the suite is used up. This is no fault of the target."""


class Budget:
    """The time of one suite."""

    def __init__(self, seconds: float) -> None:
        self.ends_at = time.monotonic() + seconds
        self.is_used = False
        self.interrupts = True

    @property
    def rest_s(self) -> float:
        """Return the rest; if there is none, the time until code that survived is interrupted again."""
        return max(self.ends_at - time.monotonic(), _REPEAT_S if self.is_used else _MOMENT_S)


_budgets: Final[list[Budget]] = []
"""The budget of the suite that runs, if it has one."""


@contextmanager
def budget(seconds: float) -> Iterator[Budget]:
    """Raise BudgetInterrupt within the block after this real time: in the main thread, or in `check`."""
    _budgets.append(Budget(seconds))
    try:
        start(math.inf, math.inf)
        yield _budgets[-1]
    finally:
        end_budget()


def end_budget() -> None:
    """Do not interrupt any more, so that the suite can close what it has opened."""
    _budgets.clear()
    stop()


def do_not_interrupt() -> None:
    """Let the suite ask for the end of its time: an interrupted simulation leaves an open loop behind."""
    for each in _budgets:
        each.interrupts = False
    stop()


def is_used_up() -> bool:
    """Return whether the time of the suite is used up."""
    if _budgets and time.monotonic() >= _budgets[-1].ends_at:
        _budgets[-1].is_used = True
    return bool(_budgets) and _budgets[-1].is_used


def check() -> None:
    """Raise BudgetInterrupt if the time of the suite is used up."""
    if is_used_up():
        raise BudgetInterrupt


def start(seconds: float, real_seconds: float) -> None:
    """Raise OutOfTimeInterrupt in the main thread after one of these times; elsewhere, do nothing."""
    if threading.current_thread() is threading.main_thread():
        rests_s = (each.rest_s for each in _budgets if each.interrupts)
        real_seconds = min(real_seconds, *rests_s, math.inf)
        for timer, bound_s in ((signal.ITIMER_VIRTUAL, seconds), (signal.ITIMER_REAL, real_seconds)):
            if bound_s == math.inf:
                continue
            number, _ = _TIMERS[timer]
            if (before := signal.signal(number, _interrupt)) is not _interrupt:
                _replaced[number] = before
            signal.setitimer(timer, bound_s, _REPEAT_S)


def stop() -> None:
    """End the bounds of `start`, and put back the handlers that it replaced; the suite's budget goes on."""
    if threading.current_thread() is threading.main_thread():
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in _replaced.items():
            signal.signal(number, handler)
        _replaced.clear()
        if _budgets:
            start(math.inf, math.inf)


@contextmanager
def bounded(
    seconds: float = RUN_SECONDS_MAX, real_seconds: float = EXAMPLE_REAL_SECONDS_MAX
) -> Iterator[None]:
    """End the block after this processor time, or after this real time.

    Raises:
        EndlessError: the block was ended.
    """
    start(seconds, real_seconds)
    try:
        yield
    except OutOfTimeInterrupt as interrupt:
        raise EndlessError(str(interrupt)) from None
    finally:
        stop()


def _interrupt(signal_number: int, _: object) -> None:
    if signal_number == signal.SIGALRM:
        check()
    raise OutOfTimeInterrupt(dict(_TIMERS.values())[signal.Signals(signal_number)])
