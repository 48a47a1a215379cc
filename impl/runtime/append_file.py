"""An append-only file of whole lines. `append` returns after the operating system has the line."""

import os
from collections.abc import Iterator
from typing import Final

_CHUNK_BYTES: Final = 1 << 16


class AppendFile:
    """Opens or creates the file, and cuts off an incomplete last line left by a killed writer.

    Raises:
        OSError: the file cannot be opened for reading and appending.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        end = os.fstat(self._descriptor).st_size
        torn = next(self._backwards(end), b"") if end else b""
        if torn and not torn.endswith(b"\n"):
            os.ftruncate(self._descriptor, end - len(torn))

    def append(self, line: bytes) -> None:
        """Append the line with one unbuffered write call, so that it survives the death of this process."""
        os.write(self._descriptor, line)

    def lines_backwards(self) -> Iterator[bytes]:
        """Return the lines with their newlines, the last line first."""
        return self._backwards(os.fstat(self._descriptor).st_size)

    def close(self) -> None:
        os.close(self._descriptor)

    def _backwards(self, end: int) -> Iterator[bytes]:
        tail = b""
        while end:
            start = max(0, end - _CHUNK_BYTES)
            first, *whole = (os.pread(self._descriptor, end - start, start) + tail).splitlines(keepends=True)
            yield from reversed(whole)
            tail, end = first, start
        if tail:
            yield tail
