"""The result of a verification, and the grouping of similar neighbouring errors into one line."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Verdict:
    damages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Facts that are not damage but useful to know."""
    records: int = 0
    entries: int = 0
    """The number of consume queue entries that match their records."""
    keys: int = 0


class Runs:
    """Groups consecutive numbers with the same error, to report each group once."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report = report
        self._first = self._last = -2

    def add(self, number: int) -> None:
        if number != self._last + 1:
            self.end()
            self._first = number
        self._last = number

    def end(self) -> None:
        if self._last >= 0:
            self._report(self._first, self._last)
        self._first = self._last = -2


def span(first: int, last: int) -> str:
    return f"entry {first}" if first == last else f"entries {first} to {last}"
