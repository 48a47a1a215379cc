"""Suppresses the warnings that injected faults are expected to cause, and keeps the errors of our own code.

No fault makes correct code use a value of the wrong type, or a name or a key that is not there. Such an error
in a background task, in a callback, or behind a general `except` has no caller that receives it: only the log
shows it.
"""

import asyncio
import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NEVER_EXPECTED: Final = (
    TypeError, AttributeError, NameError, LookupError, ArithmeticError, AssertionError, RecursionError,
    asyncio.InvalidStateError, struct.error,
)  # fmt: skip
_TASKS: Final = "asyncio"
"""The logger of errors in tasks and callbacks that no code awaits."""


class _Kept(logging.Handler):
    """Keeps the errors that are never expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, _NEVER_EXPECTED):
            self.errors.append(f"{record.getMessage().splitlines()[0]}: {type(error).__name__}: {error}")


_kept: Final = _Kept()


@contextmanager
def errors_kept(*names: str) -> Iterator[None]:
    """Keep the errors of these loggers and of tasks that are never expected, for `internal_error`."""
    loggers = [
        logger for name in {*names, _TASKS} if _kept not in (logger := logging.getLogger(name)).handlers
    ]
    for logger in loggers:
        logger.addHandler(_kept)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(_kept)


@contextmanager
def expected_warnings(*names: str) -> Iterator[None]:
    """Let the loggers with these names print nothing within the block."""
    before = [(logger := logging.getLogger(name), logger.level, logger.propagate) for name in names]
    with errors_kept(*names):
        _kept.errors = []
        for logger, _, _ in before:
            logger.setLevel(logging.ERROR)
            logger.propagate = False
        try:
            yield
        finally:
            for logger, level, propagates in before:
                logger.setLevel(level)
                logger.propagate = propagates


def internal_error() -> str:
    """Return the first error of our own code since the last call, or an empty text."""
    errors, _kept.errors = _kept.errors, []
    return errors[0] if errors else ""
