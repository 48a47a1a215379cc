"""One-line errors of the commands, and the exit code for incorrect use."""

import errno
from typing import NoReturn

import typer


def fail(command: str, message: str, code: int = 2) -> NoReturn:
    """Print one line on standard error and end the command.

    The default code means incorrect use or bad input.
    """
    typer.echo(f"mqproof {command}: {message}", err=True)
    raise typer.Exit(code)


def one_line(error: Exception) -> str:
    """Return the error's message, with the name of the file if it has one."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return str(error.strerror)
    return str(error)
