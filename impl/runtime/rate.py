"""An event rate per second, over the last ten seconds or a little more. Time is passed in."""

from typing import Final

_PACE_S: Final = 10.0


class Pace:
    """The rate of one kind of event. It has only three numbers, because there may be very many rates."""

    __slots__ = ("_count", "_rate", "_since_s")

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._count = 0.0
        self._rate = 0.0

    def add(self, count: float, now_s: float) -> None:
        self._roll(now_s)
        self._count += count

    def rate(self, now_s: float) -> float:
        """Return the count per second."""
        self._roll(now_s)
        return self._rate

    def _roll(self, now_s: float) -> None:
        elapsed_s = now_s - self._since_s
        if elapsed_s >= _PACE_S:
            self._rate = self._count / elapsed_s
            self._since_s, self._count = now_s, 0.0
