"""Limits how often one line is logged, and how large a log file becomes."""

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 64 << 20
"""The size at which a log file is renamed to NAME.1, and the earlier ones to NAME.2 and so on."""
FILES_KEPT: Final = 5

LINES_MAX: Final = 10
"""How many lines of one kind are logged in one interval."""
INTERVAL_S: Final = 60.0
_KINDS_MAX: Final = 1000


def rotate(current: str, kept: str) -> None:
    """Rename the log file, and make an empty one of the same mode. A file that is missing is no error."""
    try:
        mode = stat.S_IMODE(Path(current).stat().st_mode)
        Path(current).rename(kept)
    except FileNotFoundError:  # another program has moved it
        return
    descriptor = os.open(current, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, mode & 0o600)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


class RepeatLimit(logging.Filter):
    """Leaves out lines of a kind that was logged too often, and says later how many there were.

    Lines are of one kind if they come from the same statement: they differ only in the values.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock_s = clock_s
        self._intervals: dict[tuple[str, int], tuple[float, int]] = {}
        """Maps a kind to the start of its interval, and to the number of its lines since then."""

    def filter(self, entry: logging.LogRecord) -> bool:
        """Return whether the line is logged; the first one after others were left out says how many."""
        kind, now_s = (entry.pathname, entry.lineno), self._clock_s()
        begin_s, count = self._intervals.get(kind, (now_s, 0))
        left_out = 0
        if now_s - begin_s >= INTERVAL_S:
            begin_s, left_out, count = now_s, max(0, count - LINES_MAX), 0
        if len(self._intervals) >= _KINDS_MAX and kind not in self._intervals:
            self._intervals.clear()
        self._intervals[kind] = begin_s, count + 1
        if count >= LINES_MAX:
            return False
        if left_out:
            entry.msg = f"{entry.getMessage()} ({left_out} lines like this were left out)"
            entry.args = ()
        return True
