"""The name of the running command, with which its lines on standard error begin."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_NAME: Final[ContextVar[str]] = ContextVar("running_command", default="")


@contextmanager
def running(name: str) -> Iterator[None]:
    """Give the command of the block a name. Within it, `beginning` returns `mqproof NAME`."""
    before = _NAME.set(name)
    try:
        yield
    finally:
        _NAME.reset(before)


def beginning(command: str = "") -> str:
    """Return the beginning of a line on standard error: `mqproof COMMAND`, or `mqproof` outside of commands.

    `command` replaces the name of the running command.
    """
    return f"mqproof {command or _NAME.get()}".strip()
