"""Limits the attempts to log in, so that a secret key cannot be guessed, and brokers are not flooded."""

from collections import deque
from collections.abc import Callable
from typing import Final

ATTEMPTS_MAX: Final = 10
WINDOW_S: Final = 60.0


class LoginLimit:
    """Counts the failed attempts of all browsers. `now_s` returns the seconds since the epoch."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failures: deque[float] = deque(maxlen=ATTEMPTS_MAX)

    def wait_s(self) -> float:
        """Return how long the next attempt must wait; 0 if it may begin."""
        if len(self._failures) < ATTEMPTS_MAX:
            return 0.0
        return max(0.0, self._failures[0] + WINDOW_S - self._now_s())

    def failed(self) -> None:
        """Count an attempt when it begins; `succeeded` takes it back."""
        self._failures.append(self._now_s())

    def succeeded(self) -> None:
        if self._failures:
            self._failures.pop()
