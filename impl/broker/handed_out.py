"""What was handed out to whom: how far and how fast each group pulls. In memory only, time passed in."""

from dataclasses import dataclass, field
from typing import Final

_PACE_S: Final = 10.0


class Pace:
    """Messages a second over the last ten seconds or a little more, in three numbers."""

    __slots__ = ("_count", "_rate", "_since_s")

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._count = 0
        self._rate = 0.0

    def add(self, count: int, now_s: float) -> None:
        self._roll(now_s)
        self._count += count

    def rate(self, now_s: float) -> float:
        self._roll(now_s)
        return self._rate

    def _roll(self, now_s: float) -> None:
        elapsed_s = now_s - self._since_s
        if elapsed_s >= _PACE_S:
            self._rate = self._count / elapsed_s
            self._since_s, self._count = now_s, 0


@dataclass(slots=True)
class _Progress:
    pace: Pace
    offsets: dict[int, int] = field(default_factory=dict)
    """By queue."""


class HandedOut:
    """At most `pairs_max` pairs of topic and group; of more nothing is remembered."""

    def __init__(self, pairs_max: int) -> None:
        self._pairs_max = pairs_max
        self._pairs: dict[tuple[str, str], _Progress] = {}

    def note(self, topic: str, group: str, queue_id: int, end: int, count: int, now_s: float) -> None:
        """The group was given so many messages, the last one just before the offset `end`."""
        progress = self._pairs.get((topic, group))
        if progress is None:
            if len(self._pairs) >= self._pairs_max:
                return
            progress = self._pairs[topic, group] = _Progress(Pace(now_s))
        progress.pace.add(count, now_s)
        progress.offsets[queue_id] = end

    def end(self, topic: str, group: str, queue_id: int) -> int:
        """Up to where the group was given messages; 0 when it was not."""
        progress = self._pairs.get((topic, group))
        return progress.offsets.get(queue_id, 0) if progress else 0

    def rate(self, topic: str, group: str, now_s: float) -> float:
        """Messages a second."""
        progress = self._pairs.get((topic, group))
        return progress.pace.rate(now_s) if progress else 0.0
