"""Standard output and standard error when their reader stops reading.

Unix tools end quietly on a closed pipe, with the exit code that shells give to SIGPIPE. The default action of
SIGPIPE itself is not usable here: it would also end a broker that writes to a connection its client closed.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

CLOSED_PIPE: Final = 141
"""128 + SIGPIPE: the exit code when the reader closed the pipe, as in `mqproof coverage | head -1`."""
NOT_WRITTEN: Final = 4
"""As `mqproof.report.model.Exit.TOOL`: the output could not be written, e.g. the disk is full."""


class _OutputEndedError(SystemExit):
    """Ends the command. A SystemExit, because asyncio stops its loop for one, whatever task raises it."""


class _Output(io.FileIO):
    """File descriptor 1. From the first failed write on, every write ends the command.

    Sockets raise BrokenPipeError as well. Only a write to this file may end the command with CLOSED_PIPE.
    """

    failure: OSError | None = None
    is_over = False
    """The command has ended: what is still buffered is dropped."""

    def write(self, data: Any) -> int:
        if self.is_over:
            return len(data)
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        raise _OutputEndedError


class _Messages(io.FileIO):
    """File descriptor 2. Without a reader, progress and log lines are dropped and the command continues."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


@contextmanager
def guarded() -> Iterator[None]:
    """Run the command with streams that survive a closed pipe, and flush them at its end.

    Raises:
        SystemExit: with CLOSED_PIPE when the reader of standard output closed the pipe, with NOT_WRITTEN when
            the output could not be written for another reason.
    """
    _open_missing()
    # Under a test's capture the streams are not ours to replace.
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        yield
        return
    file = _Output(1, "w", closefd=False)
    output = _stream(file)
    messages = _stream(_Messages(2, "w", closefd=False))
    sys.stdout, sys.stderr = output, messages
    # The interpreter flushes these at its end.
    sys.__stdout__, sys.__stderr__ = output, messages  # type: ignore[misc]  # declared Final
    try:
        yield
    except _OutputEndedError:
        pass
    finally:
        with suppress(_OutputEndedError):
            output.flush()
        messages.flush()
        file.is_over = file.failure is not None
        output.flush()
        if file.failure is not None:
            _end(file.failure)


def _stream(file: io.FileIO) -> io.TextIOWrapper:
    """Return a text stream on the file, with the encoding and buffering that the interpreter chose."""
    present = sys.stdout if isinstance(file, _Output) else sys.stderr
    present.flush()
    by_lines = any(getattr(present, name, False) for name in ("line_buffering", "write_through"))
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding=present.encoding, errors=present.errors, line_buffering=by_lines
    )


def _end(failure: OSError) -> None:
    if isinstance(failure, BrokenPipeError):
        raise SystemExit(CLOSED_PIPE)
    print(f"mqproof: standard output: {failure.strerror}", file=sys.stderr)
    raise SystemExit(NOT_WRITTEN)


def _open_missing() -> None:
    """Open the null device for a stream that was closed before the start: `mqproof check >&-`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123  # open until the process ends
