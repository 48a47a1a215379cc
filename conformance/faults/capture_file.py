"""The file of a capture, which a chaos proxy writes and the history is made from."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqproof.impl.chaos.capture import BYTES_MAX, CaptureWriter, Entry, read_capture

_BUFFER_BYTES: Final = 1 << 18


def new_capture(path: Path, bytes_max: int = BYTES_MAX) -> CaptureWriter:
    """Create or replace a capture. It contains messages, so only its owner can read it. Raises OSError."""
    began = time.time_ns() - time.monotonic_ns()  # times of a capture never go back
    file = open(path, "wb", buffering=_BUFFER_BYTES, opener=_private)  # noqa: SIM115  # the writer closes it
    return CaptureWriter(file, lambda: began + time.monotonic_ns(), bytes_max)


def entries_of(path: Path) -> Iterator[Entry]:
    """Yield the records of a capture.

    Raises:
        CaptureError: the file is not a capture. OSError: it cannot be read.
    """
    with path.open("rb") as file:
        yield from read_capture(file, str(path))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
