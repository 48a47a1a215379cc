"""Bounds the processor time of one example, so that a target that computes without end is a violation.

Processor time does not depend on the load of the machine. An example takes some hundredths of a second, so
the bound decides nothing but whether the run ends.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mqproof.conformance.engine.targets import EndlessError

EXAMPLE_SECONDS_MAX: Final = 15.0
"""The processor time after which an example is ended."""
_REPEAT_S: Final = 1.0
"""The interval after which code that survived the interruption is interrupted again."""


class OutOfTimeInterrupt(KeyboardInterrupt):
    """The processor time of an example is used up.

    It is a KeyboardInterrupt because an event loop passes only such exceptions on from a callback.
    """


def start(seconds: float) -> None:
    """Raise OutOfTimeInterrupt in the main thread after this processor time; elsewhere, do nothing."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGVTALRM, _interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _REPEAT_S)


def stop() -> None:
    """Do not interrupt any more."""
    if threading.current_thread() is threading.main_thread():
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def bounded(seconds: float = EXAMPLE_SECONDS_MAX) -> Iterator[None]:
    """End the block after this processor time.

    Raises:
        EndlessError: the block was ended.
    """
    start(seconds)
    try:
        yield
    except OutOfTimeInterrupt as interrupt:
        raise EndlessError(str(interrupt)) from None
    finally:
        stop()


def _interrupt(*_: object) -> None:
    raise OutOfTimeInterrupt("an example used up its processor time without an end")
