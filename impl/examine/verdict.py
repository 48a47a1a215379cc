"""What a verification found, and how neighbours that are wrong in the same way become one line."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Verdict:
    damages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no damage and yet worth knowing."""
    records: int = 0
    entries: int = 0
    """Of consume queues, that lead to their records."""
    keys: int = 0


class Runs:
    """Numbers that are wrong in the same way: neighbours are told together."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self._first = self._last = -2

    def add(self, number: int) -> None:
        if number != self._last + 1:
            self.end()
            self._first = number
        self._last = number

    def end(self) -> None:
        if self._last >= 0:
            self._tell(self._first, self._last)
        self._first = self._last = -2


def span(first: int, last: int) -> str:
    return f"entry {first}" if first == last else f"entries {first} to {last}"
