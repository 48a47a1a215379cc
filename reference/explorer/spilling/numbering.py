"""Numbers the values in the columns of a model's states, so that a state is a row of numbers."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from mqproof.reference.explorer.columns import Columns
from mqproof.reference.explorer.fingerprint import random_number
from mqproof.reference.explorer.spilling.loops import Fingerprints, Rows

_LOW: Final = (1 << 64) - 1


class Numbering:
    """The numbers of all values so far: equal values in one column have one number. 0 is no value."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.names = tuple(columns.names())
        self.values: list[Any] = [None]
        self.random: Fingerprints = np.zeros(1 << 10, np.uint64)
        """By number: the random number of the value. A state's fingerprint is the sum of its columns'."""
        self._numbers: list[dict[Any, int]] = [{} for _ in self.names]

    def number(self, column: int, value: Any) -> int:
        """Return the number of a value in a column."""
        numbers = self._numbers[column]
        number = numbers.get(value)
        if number is None:
            number = numbers[value] = len(self.values)
            self.values.append(value)
            if number == len(self.random):
                self.random = np.concatenate((self.random, np.zeros_like(self.random)))
            self.random[number] = random_number(self.names[column], value) & _LOW
        return number

    def rows(self, states: Iterable[Any]) -> Rows:
        """Return the rows of states."""
        rows = [[self.number(*each) for each in self.columns.split(state)] for state in states]
        return np.array(rows, np.uint32).reshape(len(rows), len(self.names))
