"""Bounds the time of one example, so that a target that computes or waits without end is a violation.

Processor time does not depend on the load of the machine. An example takes some hundredths of a second, so
the bound decides nothing but whether the run ends. An example on a real target mostly waits, for some minutes
at most; the bound on its real time ends the run if a call of the target never returns.
"""

import signal
import threading
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
_REPEAT_S: Final = 1.0
"""The interval after which code that survived the interruption is interrupted again."""
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


def start(seconds: float, real_seconds: float) -> None:
    """Raise OutOfTimeInterrupt in the main thread after one of these times; elsewhere, do nothing."""
    if threading.current_thread() is threading.main_thread():
        for timer, bound_s in ((signal.ITIMER_VIRTUAL, seconds), (signal.ITIMER_REAL, real_seconds)):
            number, _ = _TIMERS[timer]
            if (before := signal.signal(number, _interrupt)) is not _interrupt:
                _replaced[number] = before
            signal.setitimer(timer, bound_s, _REPEAT_S)


def stop() -> None:
    """Do not interrupt any more, and put back the handlers that `start` replaced."""
    if threading.current_thread() is threading.main_thread():
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in _replaced.items():
            signal.signal(number, handler)
        _replaced.clear()


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
    raise OutOfTimeInterrupt(dict(_TIMERS.values())[signal.Signals(signal_number)])
