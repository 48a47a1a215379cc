"""Counts of the last minute, hour and day, by name and key. Pure; time is passed in.

Counting costs one look-up; every ten seconds the counts are added to the windows. See
docs/reference/protocol/administration.md, "Statistics of a broker".
"""

from dataclasses import dataclass, field
from typing import Final

ROLL_S: Final = 10.0

_KEYS_MAX: Final = 200_000
"""The most keys that are counted, because clients choose the keys. Further keys are not counted."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The sum of one window. `elapsed_s` is the time since its first count, at most the window's length."""

    sum: int
    times: int
    elapsed_s: float


NOTHING: Final = Counted(0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class _Window:
    bucket_s: float
    buckets: int


_WINDOWS: Final = (_Window(10.0, 6), _Window(600.0, 6), _Window(3600.0, 24))
"""A minute, an hour, a day."""


@dataclass(slots=True)
class _History:
    since_s: float
    buckets: tuple[dict[int, list[int]], ...] = field(default_factory=lambda: tuple({} for _ in _WINDOWS))
    """For each window, the sum and the number of counts by bucket number."""

    def add(self, total: int, times: int, now_s: float) -> None:
        for window, buckets in zip(_WINDOWS, self.buckets, strict=True):
            number = int(now_s // window.bucket_s)
            bucket = buckets.setdefault(number, [0, 0])
            bucket[0] += total
            bucket[1] += times
            for old in [one for one in buckets if one <= number - window.buckets]:
                del buckets[old]

    def counted(self, place: int, now_s: float) -> Counted:
        window, buckets = _WINDOWS[place], self.buckets[place]
        oldest = int(now_s // window.bucket_s) - window.buckets
        fresh = [bucket for number, bucket in buckets.items() if number > oldest]
        elapsed_s = min(window.bucket_s * window.buckets, now_s - self.since_s)
        return Counted(sum(each[0] for each in fresh), sum(each[1] for each in fresh), elapsed_s)


class RollingCounts:
    """Counters by name and key. Call `roll` every ROLL_S."""

    def __init__(self) -> None:
        self._now: dict[tuple[str, str], list[int]] = {}
        self._history: dict[tuple[str, str], _History] = {}
        self._forgotten_s = 0.0

    def add(self, name: str, key: str, count: int, times: int = 1) -> None:
        counts = self._now.get((name, key))
        if counts is None:
            if len(self._now) >= _KEYS_MAX:
                return
            counts = self._now[name, key] = [0, 0]
        counts[0] += count
        counts[1] += times

    def roll(self, now_s: float) -> None:
        """Add the counts since the last call to the windows."""
        counted, self._now = self._now, {}
        for key, (total, times) in counted.items():
            history = self._history.get(key)
            if history is None:
                if len(self._history) >= _KEYS_MAX:
                    continue
                history = self._history[key] = _History(now_s - ROLL_S)
            history.add(total, times, now_s)
        hour = _WINDOWS[-1].bucket_s
        if now_s - self._forgotten_s >= hour:
            self._forgotten_s = now_s
            day = len(_WINDOWS) - 1
            self._history = {
                key: each for key, each in self._history.items() if each.counted(day, now_s).times
            }

    def windows(self, name: str, key: str, now_s: float) -> tuple[Counted, Counted, Counted] | None:
        """Return the counts of the last minute, hour and day, without those since the last `roll`.

        Returns None for a name and key without counts in the last day.
        """
        history = self._history.get((name, key))
        if history is None:
            # Released brokers know an item from its first count on.
            return (NOTHING, NOTHING, NOTHING) if (name, key) in self._now else None
        minute, hour, day = (history.counted(place, now_s) for place in range(3))
        return minute, hour, day
