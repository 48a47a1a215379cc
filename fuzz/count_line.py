"""The progress of a campaign of known length: one line, rewritten on a terminal, repeated in a pipe."""

from typing import TextIO

from mqproof.report.console import is_quiet


class CountLine:
    """Prints how many of the things of a campaign are done."""

    def __init__(self, stream: TextIO, total: int, things: str, step: int) -> None:
        """Create it. A pipe gets a line every `step` things."""
        self._stream = stream
        self._total = total
        self._things = things
        self._step = step
        self._erase = "\r\x1b[2K" if stream.isatty() else ""
        self._next = 0

    def show(self, done: int) -> None:
        if is_quiet() or done < self._next:
            return
        self._next = done + (1 if self._erase else self._step)
        text = f"{done:,} of {self._total:,} {self._things}"
        self._stream.write(f"{self._erase}{text}" if self._erase else f"{text}\n")
        self._stream.flush()

    def end(self) -> None:
        """Erase the line on a terminal, so that the next output replaces it."""
        self._stream.write(self._erase)
        self._stream.flush()
