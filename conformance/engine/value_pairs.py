"""The dimensions of a suite, their values, and the pairs of values that its examples must meet.

Most defects need one value, or two values together: a step of one kind after a step of another kind, on one
size. A suite therefore states its dimensions in a table. The pairs that a run covers are counted from its
script, not from what was planned.
"""

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Final

Row = Mapping[str, str]
"""One value of each dimension, by the name of the dimension."""
Cell = tuple[str, str]
"""A dimension and one of its values."""
Pair = tuple[Cell, Cell]
"""Two values of different dimensions, in the order of the table."""

_DRAFTS: Final = 8
"""The number of rows that are drafted for each row that is used."""


@dataclass(frozen=True, slots=True)
class Value:
    name: str
    shows: str = ""
    """A regular expression that the script of an example with this value contains; it matches over lines."""
    hides: str = ""
    """A regular expression that the script does not contain; empty for none."""
    needs: frozenset[str] = frozenset()
    """The capabilities of which the target needs one; empty if every target can do it."""

    def __post_init__(self) -> None:
        """Check that a script can lack the value."""
        assert self.shows or self.hides, f"every script has the value {self.name!r}"

    def is_in(self, script: str) -> bool:
        """Return True if the script shows that the example had this value."""
        if self.hides and re.search(self.hides, script, re.MULTILINE):
            return False
        return re.search(self.shows, script, re.MULTILINE) is not None


def values_named(names: Iterable[str], before: str = "^", after: str = "") -> tuple[Value, ...]:
    """Return a value for each name; the script shows it by the name between two regular expressions."""
    return tuple(Value(name, f"{before}{name}{after}") for name in names)


@dataclass(frozen=True, slots=True)
class Dimension:
    name: str
    values: tuple[Value, ...]
    """The first one is the ordinary value, which needs the fewest steps."""
    opens: bool = False
    """Whether the value is drawn when the example opens, so that its first line shows it."""


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A pair of values that no example can have."""

    one: Cell
    other: Cell
    why: str


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The table of one suite."""

    dimensions: tuple[Dimension, ...] = ()
    infeasible: tuple[Infeasible, ...] = ()

    def __post_init__(self) -> None:
        """Check that the infeasible pairs name values of the table."""
        known = {(each.name, value.name) for each in self.dimensions for value in each.values}
        named = {cell for each in self.infeasible for cell in (each.one, each.other)}
        assert named <= known, f"infeasible pairs name unknown values: {sorted(named - known)}"

    def excluded(self, capabilities: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield what no example on such a target can have, and the reason."""
        for dimension in self.dimensions:
            for value in dimension.values:
                if not _possible(value, capabilities):
                    needed = " or ".join(sorted(value.needs))
                    yield f"{dimension.name}: {value.name}", f"the target does not support {needed}"
        for each in self.infeasible:
            yield shown((each.one, each.other)), each.why

    def pairs(self, capabilities: Collection[str]) -> tuple[Pair, ...]:
        """Return the pairs that examples on a target with these capabilities can have."""
        return tuple(
            (one, other)
            for first, second in combinations(self.dimensions, 2)
            for one, other in product(_cells(first, capabilities), _cells(second, capabilities))
            if self.allows(one, other)
        )

    def allows(self, one: Cell, other: Cell) -> bool:
        return not any({one, other} == {each.one, each.other} for each in self.infeasible)

    def opening(self, first_line: str) -> dict[str, str]:
        """Return the values that were drawn when the example opened."""
        return {
            dimension.name: value.name
            for dimension in self.dimensions
            if dimension.opens
            for value in dimension.values
            if value.is_in(first_line)
        }

    def met(self, row: Row, script: str) -> tuple[Pair, ...]:
        """Return the pairs of the row whose values the script shows."""
        met = [
            (dimension.name, value.name)
            for dimension in self.dimensions
            for value in dimension.values
            if row.get(dimension.name) == value.name and value.is_in(script)
        ]
        return tuple(combinations(met, 2))

    def shown_in(self, script: str) -> frozenset[Pair]:
        """Return all pairs of values that the script shows."""
        cells = [
            [(each.name, value.name) for value in each.values if value.is_in(script)]
            for each in self.dimensions
        ]
        pairs = (pair for first, second in combinations(cells, 2) for pair in product(first, second))
        return frozenset(pair for pair in pairs if self.allows(*pair))

    def row(
        self, missing: Set[Pair], opening: Row, capabilities: Collection[str], chance: random.Random
    ) -> dict[str, str]:
        """Return a row with the values of the opening and many of the missing pairs; empty if it has none.

        It is the best of a few greedy drafts, as in the generators of covering arrays.
        """
        begins = [pair for pair in sorted(missing) if self._begins(pair, opening)]
        chance.shuffle(begins)
        drafts = (self._draft({**opening, **dict(pair)}, missing, capabilities, chance)
                  for pair in begins[:_DRAFTS])  # fmt: skip
        return max(drafts, key=lambda row: len(missing & self.pairs_of(row)), default={})

    def pairs_of(self, row: Row) -> frozenset[Pair]:
        """Return the pairs of the row, in the order of the table."""
        ordered = [(each.name, row[each.name]) for each in self.dimensions if each.name in row]
        return frozenset(combinations(ordered, 2))

    def resets(self, row: Row, capabilities: Collection[str]) -> Iterator[Row]:
        """Yield the replacements of single values of the row by the ordinary value."""
        for dimension in self.dimensions:
            ordinary = next(iter(_cells(dimension, capabilities)), None)
            if ordinary and not dimension.opens and row.get(dimension.name, ordinary[1]) != ordinary[1]:
                yield dict([ordinary])

    def is_feasible(self, row: Row) -> bool:
        return all(self.allows(one, other) for one, other in combinations(row.items(), 2))

    def _begins(self, pair: Pair, opening: Row) -> bool:
        fits = all(opening.get(name, value) == value for name, value in pair)
        return fits and all(self.allows(cell, each) for cell in pair for each in opening.items())

    def _draft(
        self, row: dict[str, str], missing: Set[Pair], capabilities: Collection[str], chance: random.Random
    ) -> dict[str, str]:
        """Complete the row greedily; a dimension without an allowed value is left out."""
        others = [each for each in self.dimensions if each.name not in row and not each.opens]
        chance.shuffle(others)
        for dimension in others:
            cells = [cell for cell in _cells(dimension, capabilities)
                     if all(self.allows(cell, each) for each in row.items())]  # fmt: skip
            chance.shuffle(cells)
            if cells:
                name, value = max(cells, key=lambda cell: self._gain(cell, row, missing))
                row[name] = value
        return row

    def _gain(self, cell: Cell, row: Row, missing: Set[Pair]) -> int:
        return sum((cell, each) in missing or (each, cell) in missing for each in row.items())


NO_DIMENSIONS: Final = Dimensions()


@cache
def covering_rows(dimensions: Dimensions) -> tuple[Row, ...]:
    """Return few rows that have all pairs of the table together; always the same ones."""
    rows: list[Row] = []
    missing, chance = set(dimensions.pairs(())), random.Random(0)
    while missing and (row := dimensions.row(missing, {}, (), chance)):
        rows.append(row)
        missing -= dimensions.pairs_of(row)
    return tuple(rows)


def row_of(dimensions: Dimensions, number: int) -> Row:
    """Return the row of a run with this number, such as its seed: consecutive numbers have all pairs."""
    rows = covering_rows(dimensions)
    return rows[number % len(rows)]


def shown(pair: Pair) -> str:
    """Return the pair for people."""
    return " with ".join(f"{name}: {value}" for name, value in pair)


def _cells(dimension: Dimension, capabilities: Collection[str]) -> list[Cell]:
    return [(dimension.name, each.name) for each in dimension.values if _possible(each, capabilities)]


def _possible(value: Value, capabilities: Collection[str]) -> bool:
    return not value.needs or not value.needs.isdisjoint(capabilities)
