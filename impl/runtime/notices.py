"""Log lines about events that a peer can cause as often as it likes: one line for each kind and interval."""

import asyncio
import logging
from typing import Final

INTERVAL_S: Final = 30.0
_KINDS_MAX: Final = 1000


class Notices:
    """Logs the first event of a kind in each interval; the next line says how many were not logged."""

    def __init__(self, log: logging.Logger, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._interval_s = interval_s
        self._kinds: dict[str, tuple[float, int]] = {}
        """By kind: when it was logged last, and how many events were not logged since."""

    def warn(self, kind: str, text: str) -> None:
        """Log a warning, unless one of this kind was logged less than an interval ago."""
        now_s = asyncio.get_running_loop().time()
        logged_s, skipped = self._kinds.pop(kind, (now_s - self._interval_s, 0))
        if now_s - logged_s < self._interval_s:
            self._kinds[kind] = logged_s, skipped + 1
            return
        if len(self._kinds) >= _KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now_s, 0
        self._log.warning("%s%s", text, f" ({skipped} more like this since the last line)" if skipped else "")
