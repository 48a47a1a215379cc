"""Damage of bytes that were durable: each place is logged once, counted, and kept for the metrics.

See docs/reference/protocol/storing.md, "Damaged files".
"""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_log = logging.getLogger(__name__)

_PLACES_MAX: Final = 10_000
"""How many places are remembered, so that each is logged and counted once."""


class DamageKind(StrEnum):
    """What is damaged. The values are labels of the metrics."""

    RECORD = "record"
    QUEUE_ENTRY = "queue_entry"
    INDEX_ENTRY = "index_entry"
    LOG = "log"
    TABLE = "table"


class Outcome(StrEnum):
    """What the store did. The values are labels of the metrics."""

    REPAIRED = "repaired"
    SKIPPED = "skipped"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged place."""

    kind: DamageKind
    place: str
    """The file and the position in it, or the queue and its offset."""
    problem: str
    outcome: Outcome


class DamageReport:
    """The damage that one store has found since its start."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[DamageKind, Outcome]] = Counter()
        self._known: dict[tuple[DamageKind, str], Outcome] = {}

    @property
    def counts(self) -> Mapping[tuple[DamageKind, Outcome], int]:
        """The number of damaged places, by kind and outcome."""
        return self._counts

    def __len__(self) -> int:
        return sum(self._counts.values())

    def add(self, damage: Damage) -> None:
        """Log and count the damage, unless the same outcome at this place is known."""
        key = damage.kind, damage.place
        if self._known.get(key) is damage.outcome:
            return
        if len(self._known) >= _PLACES_MAX:
            del self._known[next(iter(self._known))]
        self._known[key] = damage.outcome
        self._counts[damage.kind, damage.outcome] += 1
        level = logging.WARNING if damage.outcome is Outcome.REPAIRED else logging.ERROR
        _log.log(
            level,
            "damaged %s at %s: %s: %s",
            damage.kind.replace("_", " "),
            damage.place,
            damage.problem,
            damage.outcome,
        )
