"""The steps that several suites share."""

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """The earliest and the latest time of an event, in seconds of a clock with any starting point."""

    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Query:
    """The broker returned this committed offset of the group; None means "not found"."""

    queue_id: int
    offset: int | None

    def __str__(self) -> str:
        return f"committed in queue {self.queue_id}: {'nothing' if self.offset is None else self.offset}"


@dataclass(frozen=True, slots=True)
class Wait:
    """The client waited for this time."""

    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:g} s pass"
