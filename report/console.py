"""The output of every command apart from its report: progress, and the one line that ends it early."""

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
from mqproof.report.running_command import beginning

_TERMINATED: Final = 128 + signal.SIGTERM


def stop(message: str, code: int) -> NoReturn:
    """End the command with one line on standard error and an exit code of `mqproof.report.model.Exit`.

    The line begins with the name of the running command.
    """
    print(f"{beginning()}: {message}", file=sys.stderr)
    raise SystemExit(code)


def is_quiet() -> bool:
    """Whether the command shows no progress: it was started with --quiet, or logs errors only."""
    return not logging.getLogger("mqproof").isEnabledFor(logging.WARNING)


@contextmanager
def stages(title: str) -> Iterator[Callable[[str], None]]:
    """Show the progress of a long command on standard error, separate from the result.

    On a terminal this is one line that is rewritten, with the elapsed seconds. Otherwise it is one line for
    each stage. With --quiet nothing is shown.
    """
    if is_quiet():
        yield lambda _stage: None
        return
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    started = time.monotonic()
    if not console.is_terminal:
        yield lambda stage: console.print(f"{title}: {one_line(stage)}", soft_wrap=True)
        return
    moving = _Moving(title, started)
    with console.status(moving, spinner="dots"):
        yield moving.show_stage


class _Moving:
    """The rewritten line; it computes the elapsed seconds each time it is drawn."""

    def __init__(self, title: str, started: float) -> None:
        self._text = title
        self._title = title
        self._started = started

    def show_stage(self, stage: str) -> None:
        self._text = f"{self._title}: {one_line(stage)}"

    def __rich__(self) -> Text:
        # Not a plain str, in which rich would look for markup and emoji codes.
        return Text(f"{self._text} ({time.monotonic() - self._started:.0f} s so far)")


class _TerminatedError(KeyboardInterrupt):
    """Raised for SIGTERM. Not a SystemExit: Hypothesis would report that as a test failure and continue."""


@contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM unwind the stack, as an interrupt does, so that the processes we started end too.

    The command then ends with one line, and with the exit code that shells use for SIGTERM.
    """
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _TerminatedError:
        stop("ended by SIGTERM", _TERMINATED)
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> NoReturn:
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)  # unfinished tasks are expected now
    raise _TerminatedError
