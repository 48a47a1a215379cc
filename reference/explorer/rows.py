"""States as rows of numbers, one for each field, so that states are quick to change, hash and send."""

from collections.abc import Iterable
from typing import Any

from mqproof.reference.explorer.columns import Columns
from mqproof.reference.explorer.fingerprint import random_number

Row = tuple[int, ...]


class Rows:
    """The numbers of all values so far: equal values in one column have one number."""

    def __init__(self, columns: Columns, parts: int) -> None:
        """Assign each state to one of some parts.

        Args:
            parts: the number of parts. The part of a state is the sum of its values' shares, modulo this.
        """
        self.columns = columns
        self.values: list[Any] = []
        self.places: list[int] = []
        """By number: the column of the value."""
        self.shares: list[int] = []
        """By number: the value's share, which is the same in every process and run."""
        self._parts = parts
        self._names = tuple(columns.names())
        self._numbers: list[dict[Any, int]] = [{} for _ in self._names]

    def number(self, column: int, value: Any) -> int:
        """Return the number of a value in a column."""
        numbers = self._numbers[column]
        number = numbers.get(value)
        if number is None:
            number = numbers[value] = len(self.values)
            self.values.append(value)
            self.places.append(column)
            self.shares.append(random_number(self._names[column], value) % self._parts)
        return number

    def row(self, state: Any) -> Row:
        """Return the row of a state."""
        return tuple(self.number(*each) for each in self.columns.split(state))

    def state(self, row: Row) -> Any:
        """Return the state of a row."""
        return self.columns.joined(map(self.values.__getitem__, row))

    def part(self, numbers: Iterable[int]) -> int:
        """Return the part of a row."""
        return sum(map(self.shares.__getitem__, numbers)) % self._parts
