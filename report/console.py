"""What every command does on a terminal beside its report: progress, and stopping with one clear line."""

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from rich.console import Console
from rich.text import Text

from mqproof.report.printable import one_line

_TERMINATED: Final = 128 + signal.SIGTERM


def stop(message: str, code: int) -> NoReturn:
    """End the command with one line on standard error and an exit code of `mqproof.report.model.Exit`."""
    print(f"mqproof: {message}", file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def stages(title: str) -> Iterator[Callable[[str], None]]:
    """Tells what a long command is at: a moving line on a terminal, with the seconds so far; a line a stage
    elsewhere. Goes to standard error, away from the result."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    started = time.monotonic()
    if not console.is_terminal:
        yield lambda stage: console.print(f"{title}: {one_line(stage)}", soft_wrap=True)
        return
    moving = _Moving(title, started)
    with console.status(moving, spinner="dots"):
        yield moving.told


class _Moving:
    """A line that is right whenever it is drawn."""

    def __init__(self, title: str, started: float) -> None:
        self._text = title
        self._title = title
        self._started = started

    def told(self, stage: str) -> None:
        self._text = f"{self._title}: {one_line(stage)}"

    def __rich__(self) -> Text:
        # No plain str, in which rich would look for markup and emoji codes.
        return Text(f"{self._text} ({time.monotonic() - self._started:.0f} s so far)")


class _TerminatedError(KeyboardInterrupt):
    """No SystemExit: Hypothesis would take that for a failure of what it examines, and go on."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM unwinds the stack, as an interrupt does: processes that we started would live on. Then the
    command ends with a line, and the exit code that shells give to what a signal ended."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _TerminatedError:
        stop("ended by SIGTERM", _TERMINATED)
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> NoReturn:
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)  # what is left undone is no news
    raise _TerminatedError
