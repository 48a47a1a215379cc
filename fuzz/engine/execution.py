"""Runs a target on one input and names the failure, so that the same defect always gets the same name."""

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from mqproof.fuzz.target import ENDS_IN_TIME, ONLY_DOCUMENTED_ERRORS, Finding, Target

CPU_SECONDS_MAX: Final = 10.0
"""The limit of processor time for one input. Wall-clock time would report findings on a busy machine."""

_ROOT: Final = Path(__file__).parents[2]
_OURS: Final = frozenset({"spec", "reference", "impl", "conformance", "fuzz", "spark_audit", "report"})
_FRAMES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure that one input caused."""

    invariant: str
    signature: str
    """Equal for every input that shows the same defect: the invariant, or the error and its stack."""
    message: str
    """A message for people; its details may differ from input to input."""


class _HangError(BaseException):
    """Signals that the time limit is exceeded.

    Not an Exception, so that a target's `except Exception` cannot swallow it.
    """


def judge(
    target: Target,
    data: bytes,
    run: Callable[[Callable[[bytes], None], bytes], None] | None = None,
    *,
    cpu_seconds: float | None = None,
) -> Failure | None:
    """Return the failure that the input causes, or None.

    `run(target.run, data)` may wrap the execution to measure it. `cpu_seconds` replaces CPU_SECONDS_MAX.
    """
    cpu_seconds = cpu_seconds or CPU_SECONDS_MAX
    try:
        with _time_limit(cpu_seconds):
            if run is None:
                target.run(data)
            else:
                run(target.run, data)
    except Finding as finding:
        return Failure(finding.invariant, finding.invariant, str(finding))
    except _HangError as error:
        where = stack(error)[:1] or ["unknown place"]
        place = where[0].rsplit(":", 1)[0]  # a loop can be interrupted at any of its lines
        message = f"more than {cpu_seconds:g} seconds of processor time, in {place}"
        return Failure(ENDS_IN_TIME, f"{ENDS_IN_TIME} {place}", message)
    except Exception as error:
        kind = type(error).__name__
        places = stack(error)
        signature = f"{ONLY_DOCUMENTED_ERRORS} {kind} {' < '.join(places)}".rstrip()
        return Failure(ONLY_DOCUMENTED_ERRORS, signature, f"{kind}: {error} at {places[:1] or ['?']}")
    return None


def stack(error: BaseException) -> list[str]:
    """Return the innermost frames in our own code, innermost first, as FILE:FUNCTION:LINE. At most three."""
    frames = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        inside = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else None
        if inside and inside.parts[0] in _OURS and path != Path(__file__):
            frames.append(f"{inside.as_posix()}:{frame.f_code.co_qualname}:{line}")
    return frames[::-1][:_FRAMES_MAX]


@contextmanager
def _time_limit(cpu_seconds: float) -> Iterator[None]:
    """Raise _HangError in the block when the process has used this much processor time in it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach only the main thread; the campaign also watches its workers from outside
        return
    _install_alarm()
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@cache
def _install_alarm() -> None:
    """Install the handler of the limit once for the process: doing it for each input takes too long."""
    signal.signal(signal.SIGVTALRM, _on_alarm)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise _HangError
