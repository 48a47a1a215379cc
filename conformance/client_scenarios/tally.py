"""Counts what consumers received against what they had to receive."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one run. A message that is expected twice counts twice."""

    expected: int = 0
    received: int = 0
    lost: int = 0
    duplicated: int = 0
    unexpected: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.expected + other.expected,
            self.received + other.received,
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.unexpected + other.unexpected,
        )


def tally(expected: Mapping[str, int], got: Iterable[str], optional: Collection[str] = ()) -> Tally:
    """Count the bodies received. `optional` are messages whose send has no known outcome."""
    seen = Counter(got)
    return Tally(
        expected=sum(expected.values()),
        received=seen.total(),
        lost=sum(max(0, count - seen[body]) for body, count in expected.items()),
        duplicated=sum(
            max(0, count - expected.get(body, 1))
            for body, count in seen.items()
            if body in expected or body in optional
        ),
        unexpected=sum(
            count for body, count in seen.items() if body not in expected and body not in optional
        ),
    )


def out_of_order(bodies: Iterable[str]) -> list[str]:
    """Return the messages that came after a later one of their key. A body is `KEY-NUMBER`.

    A message that was delivered before does not count: it is a duplicate.
    """
    last: dict[str, int] = {}
    seen: set[str] = set()
    found = []
    for body in bodies:
        key, _, number = body.rpartition("-")
        if body not in seen and int(number) < last.get(key, -1):
            found.append(body)
        seen.add(body)
        last[key] = max(last.get(key, -1), int(number))
    return found
