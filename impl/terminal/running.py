"""Runs a command's coroutine, and reports errors that the user can correct in one line."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from mqproof.impl.terminal.errors import fail, one_line

T = TypeVar("T")


def run_command(command: str, main: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end and return its result.

    Errors that the user can correct end the command with one line. All others are defects and are raised.
    """
    from mqproof.impl.client.model import ClientError, MessageError
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.serving import run
    from mqproof.impl.store.errors import StoreError
    from mqproof.spec.events import EventError

    try:
        return run(main)
    except (ConfigError, StoreError, ClientError, MessageError, EventError, OSError) as error:
        fail(command, one_line(error))
