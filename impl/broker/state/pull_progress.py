"""The pull offset and pull rate of each group in each queue. In memory only; time is passed in."""

from dataclasses import dataclass, field

from mqproof.impl.runtime.rate import Pace


@dataclass(slots=True)
class _Progress:
    pace: Pace
    offsets: dict[int, int] = field(default_factory=dict)
    """By queue id, the offset after the last message that was delivered to the group."""


class PullProgress:
    """The progress of at most `pairs_max` pairs of topic and group; further pairs are not recorded."""

    def __init__(self, pairs_max: int) -> None:
        self._pairs_max = pairs_max
        self._pairs: dict[tuple[str, str], _Progress] = {}

    def note(self, topic: str, group: str, queue_id: int, end: int, count: int, now_s: float) -> None:
        """Record that the group received `count` messages, the last one just before the offset `end`."""
        progress = self._pairs.get((topic, group))
        if progress is None:
            if len(self._pairs) >= self._pairs_max:
                return
            progress = self._pairs[topic, group] = _Progress(Pace(now_s))
        progress.pace.add(count, now_s)
        progress.offsets[queue_id] = end

    def end(self, topic: str, group: str, queue_id: int) -> int:
        """Return the offset after the last message that the group received; 0 if it received none."""
        progress = self._pairs.get((topic, group))
        return progress.offsets.get(queue_id, 0) if progress else 0

    def rate(self, topic: str, group: str, now_s: float) -> float:
        """Return the messages per second."""
        progress = self._pairs.get((topic, group))
        return progress.pace.rate(now_s) if progress else 0.0
