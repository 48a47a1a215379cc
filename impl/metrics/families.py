"""Declarations of metrics, and the values of metrics at one moment."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class MetricType(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """The declaration of a metric."""

    name: str
    type: MetricType
    meaning: str
    labels: tuple[str, ...] = ()
    """Its own labels. Those of the source are added."""


class Distribution:
    """How many values fall into each interval, and their sum. `bounds` are the upper bounds, ascending."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def copy(self) -> "Distribution":
        copied = Distribution(self.bounds)
        copied.counts, copied.sum = list(self.counts), self.sum
        return copied


Value = float | Distribution


@dataclass(frozen=True, slots=True)
class Family:
    """The values of one metric of one source."""

    metric: Metric
    source_labels: Mapping[str, str]
    values: Mapping[tuple[str, ...], Value]
    """The values by the values of the metric's labels."""


class Source(Protocol):
    """A server that has metrics."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics that `collect` may return."""
        ...

    async def collect(self) -> list[Family]:
        """Return the current values. Long work is spread over turns of the event loop."""
        ...

    def unready(self) -> str:
        """Return why the server cannot do all of its work, in one line; empty if it can."""
        ...
