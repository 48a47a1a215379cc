"""Ends examples with scenarios, until these cover all pairs of the suite's dimensions.

A scenario is a short sequence of steps with one value of each dimension. It follows the drawn steps of an
example, so that the table changes no draw: a seed stands for the same drawn steps with and without it. The
first examples have no scenario, so that a simple defect is found by a short script.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.engine.suite_definition import Session, Suite
from mqproof.conformance.engine.value_pairs import Pair, Row, shown
from mqproof.report.model import Table, Verdict

PLAIN_EXAMPLES: Final = 10
"""The number of examples before the first scenario."""
MISSING_SHOWN: Final = 10
TRIES_MAX: Final = 8
"""The number of scenarios that try to meet a pair. A pair that none of them meets stays missing."""


@dataclass(frozen=True, slots=True)
class PairCoverage:
    """The pairs of values that the examples of a run have met."""

    suite: str
    feasible: tuple[Pair, ...]
    """The pairs that examples on this target can have."""
    covered: frozenset[Pair]
    excluded: tuple[tuple[str, str], ...]
    """What no example on this target can have, with the reason."""

    @property
    def missing(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.feasible if pair not in self.covered)

    def evidence(self) -> dict[str, int]:
        """Return the numbers for the scoreboard; nothing for a suite without dimensions."""
        counts = {"pairs covered": len(self.covered), "pairs feasible": len(self.feasible)}
        return counts if self.feasible else {}

    def tables(self) -> tuple[Table, ...]:
        """Return the first missing pairs, and what was excluded with the reason."""
        missing = tuple((shown(pair),) for pair in self.missing[:MISSING_SHOWN])
        if len(self.missing) > MISSING_SHOWN:
            missing += ((f"and {len(self.missing) - MISSING_SHOWN} more",),)
        title = f"Pairs of values that no example of {self.suite} met"
        tables = (
            Table(title, ("pair",), missing),
            Table(f"Values and pairs that examples of {self.suite} cannot have", ("what", "why"),
                  self.excluded),
        )  # fmt: skip
        return tuple(table for table in tables if table.rows)


class DirectedScenarios:
    """Chooses and performs the scenarios of one run, and counts the pairs that they met."""

    def __init__(self, suite: Suite, seed: int, wanted: Collection[str] | None) -> None:
        self._suite = suite
        self._wanted = wanted
        self._chance = random.Random(seed)
        self._capabilities: frozenset[str] | None = None
        self._feasible: tuple[Pair, ...] = ()
        self._covered: set[Pair] = set()
        self._tries: Counter[Pair] = Counter()
        self._row: Row = {}
        self._script = ""
        self._examples = 0
        self._kept: Row | None = None
        """The row that all examples use while a violation is shrunk."""

    @property
    def coverage(self) -> PairCoverage:
        excluded = tuple(self._suite.dimensions.excluded(self._capabilities or frozenset()))
        return PairCoverage(self._suite.name, self._feasible, frozenset(self._covered), excluded)

    def fit(self, capabilities: Collection[str]) -> None:
        """Find the pairs that examples on targets with these capabilities can have."""
        if self._capabilities is None:
            self._capabilities = frozenset(capabilities)
            self._feasible = self._suite.dimensions.pairs(self._capabilities)

    def perform(self, session: Session) -> None:
        """Perform the next scenario, unless all pairs are covered or the drawn steps have already failed."""
        self._row, self._script = {}, ""
        is_plain = self._kept is not None or self._examples < PLAIN_EXAMPLES
        missing = frozenset() if is_plain else self._missing()
        if not (missing or self._kept) or session.dead or self._has_failed(session):
            return
        before = session.script()
        self._row = self._kept or self._next(missing, before[0])
        if self._row:
            self._suite.scenario(session, self._row)
            script = session.script()
            self._script = "\n".join((script[0], *script[len(before) :]))

    def count(self) -> None:
        """Count the example, and the pairs that its scenario met."""
        self._examples += 1
        self._covered.update(self._suite.dimensions.met(self._row, self._script))

    def keep(self) -> None:
        """Use the row of the last scenario from now on, so that shrinking repeats what has failed."""
        if self._kept is None:
            self._kept = self._row

    def simplify(self, fails_again: Callable[[], bool]) -> None:
        """Leave out the kept scenario, or reset its values, if the example fails again without them.

        `fails_again` repeats the drawn steps of the example with the row that is kept.
        """
        failing, self._kept = self._kept, {}
        if not failing or fails_again():
            return
        for simpler in self._suite.dimensions.resets(failing, self._capabilities or frozenset()):
            self._kept = {**failing, **simpler}
            if self._suite.dimensions.is_feasible(self._kept) and fails_again():
                failing = self._kept
        self._kept = failing

    def _missing(self) -> frozenset[Pair]:
        """Return the pairs that a scenario should still try to meet."""
        return frozenset(
            pair for pair in self._feasible
            if pair not in self._covered and self._tries[pair] < TRIES_MAX
        )  # fmt: skip

    def _next(self, missing: frozenset[Pair], opening: str) -> Row:
        table = self._suite.dimensions
        row = table.row(missing, table.opening(opening), self._capabilities or frozenset(), self._chance)
        self._tries.update(table.pairs_of(row))
        return row

    def _has_failed(self, session: Session) -> bool:
        return any(
            finding.verdict is Verdict.VIOLATED and (self._wanted is None or invariant in self._wanted)
            for invariant, finding in session.findings().items()
        )
