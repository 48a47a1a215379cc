"""One-line errors of the commands, and the exit code for incorrect use."""

from typing import NoReturn

import typer

from mqproof.running_command import beginning


def fail(message: str, code: int = 2) -> NoReturn:
    """Print one line on standard error, which begins with the name of the command, and end the command.

    The default code means incorrect use or bad input.
    """
    typer.echo(f"{beginning()}: {message}", err=True)
    raise typer.Exit(code)


def one_line(error: Exception) -> str:
    """Return the error's message, with the name of the file if it has one."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
