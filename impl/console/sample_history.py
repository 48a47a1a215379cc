"""The counts of brokers and topics over time, in bounded memory, and the rates that follow from them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

POINTS_MAX: Final = 360
"""The most samples of one subject: an hour at one in ten seconds."""
SUBJECTS_MAX: Final = 600

Subject = tuple[str, str]
"""The kind, `broker` or `topic`, and the name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was counted at one time. The counts only grow, unless a server restarts or an offset is reset."""

    at_s: float
    came_in: int
    """Messages stored since some time in the past."""
    went_out: int
    """Messages delivered or consumed since some time in the past."""
    behind: int | None = None
    """Messages that consumer groups have not consumed; None if it is not known."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages per second since the sample before; None if a count went back."""

    at_s: float
    in_s: float | None
    out_s: float | None
    behind: int | None


class SampleHistory:
    """The last samples of each subject. A new one replaces that which was not sampled for longest."""

    def __init__(self, points_max: int = POINTS_MAX, subjects_max: int = SUBJECTS_MAX) -> None:
        self._points_max = points_max
        self._subjects_max = subjects_max
        self._samples: dict[Subject, deque[Sample]] = {}

    def add(self, subject: Subject, sample: Sample) -> None:
        """Append a sample, and keep the subjects in the order of their last samples."""
        samples = self._samples.pop(subject, None)
        if samples is None:
            samples = deque(maxlen=self._points_max)
            if len(self._samples) >= self._subjects_max:
                del self._samples[next(iter(self._samples))]
        self._samples[subject] = samples
        samples.append(sample)

    def keep(self, kind: str, names: Iterable[str]) -> None:
        """Forget the subjects of a kind that no longer exist."""
        known = set(names)
        for subject in [subject for subject in self._samples if subject[0] == kind]:
            if subject[1] not in known:
                del self._samples[subject]

    def names(self, kind: str) -> list[str]:
        return sorted(name for each, name in self._samples if each == kind)

    def rates(self, subject: Subject, since_s: float = 0.0) -> list[Rate]:
        """Return the rates after `since_s`, oldest first."""
        pairs = pairwise(self._samples.get(subject, ()))
        return [_rate(before, after) for before, after in pairs if after.at_s > since_s]

    def last(self, subject: Subject) -> Rate | None:
        """Return the latest rate; None before the second sample."""
        samples = self._samples.get(subject, deque[Sample]())
        return _rate(samples[-2], samples[-1]) if len(samples) > 1 else None


def _rate(before: Sample, after: Sample) -> Rate:
    seconds = max(after.at_s - before.at_s, 1e-3)

    def per_second(earlier: int, later: int) -> float | None:
        return (later - earlier) / seconds if later >= earlier else None

    return Rate(
        after.at_s,
        per_second(before.came_in, after.came_in),
        per_second(before.went_out, after.went_out),
        after.behind,
    )
