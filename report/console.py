"""What every command does on a terminal beside its report: progress, and stopping with one clear line."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from rich.console import Console

_TERMINATED: Final = 128 + signal.SIGTERM


def stop(message: str, code: int) -> NoReturn:
    """End the command with one line on standard error and an exit code of `report.model.Exit`."""
    print(f"mqproof: {message}", file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def stages(title: str) -> Iterator[Callable[[str], None]]:
    """Tells what a long command is at: a moving line on a terminal, a line a stage elsewhere.

    Goes to standard error, away from the result. Each stage is told when it begins, with the seconds so far.
    """
    console = Console(stderr=True, highlight=False, markup=False)
    started = time.monotonic()
    if not console.is_terminal:
        yield lambda stage: console.print(f"{title}: {stage}", soft_wrap=True)
        return
    with console.status(title, spinner="dots") as status:

        def told(stage: str) -> None:
            status.update(f"{title}: {stage} ({time.monotonic() - started:.0f} s so far)")

        yield told


class _TerminatedError(KeyboardInterrupt):
    """No SystemExit: Hypothesis would take that for a failure of what it examines, and go on."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM unwinds the stack, as an interrupt does: processes that we started would live on."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except _TerminatedError:
        raise SystemExit(_TERMINATED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(*_: object) -> NoReturn:
    raise _TerminatedError
