"""The name of the running command, with which its lines on standard error begin."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_NAME: Final[ContextVar[str]] = ContextVar("running_command", default="mqproof")


@contextmanager
def running(name: str) -> Iterator[None]:
    """Name the command of the block as it was typed, such as `mqproof audit run`."""
    before = _NAME.set(name)
    try:
        yield
    finally:
        _NAME.reset(before)


def beginning() -> str:
    """Return the beginning of a line on standard error: the name of the running command.

    Outside of commands it is `mqproof`.
    """
    return _NAME.get()
