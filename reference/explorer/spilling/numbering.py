"""Numbers the values of the fields of a model's states, so that a state is a row of numbers."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mqproof.reference.explorer.fingerprint import field_names, random_number, values_of
from mqproof.reference.explorer.spilling.loops import Fingerprints, Rows

_LOW: int = (1 << 64) - 1


class Numbering:
    """The numbers of all values so far: equal values of one field have one number. 0 is no value."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.fields = field_names(kind)
        self.values: list[Any] = [None]
        self.random: Fingerprints = np.zeros(1 << 10, np.uint64)
        """By number: the random number of the value. A state's fingerprint is the sum of its fields'."""
        self._numbers: list[dict[Any, int]] = [{} for _ in self.fields]

    def number(self, place: int, value: Any) -> int:
        """Return the number of a value of the field at this place."""
        numbers = self._numbers[place]
        if value not in numbers:
            number = numbers[value] = len(self.values)
            self.values.append(value)
            if number == len(self.random):
                self.random = np.concatenate((self.random, np.zeros_like(self.random)))
            self.random[number] = random_number(self.fields[place], value) & _LOW
        return numbers[value]

    def rows(self, states: Iterable[Any]) -> Rows:
        """Return the rows of states."""
        split = values_of(self.kind)
        rows = [[self.number(place, value) for place, value in enumerate(split(state))] for state in states]
        return np.array(rows, np.uint32).reshape(len(rows), len(self.fields))

    def reader(self, row: Rows) -> Callable[[int], Any]:
        """Return a function from a field's place to its value in this row."""
        numbers, values = row.tolist(), self.values
        return lambda place: values[numbers[place]]

    def state(self, row: Rows) -> Any:
        """Return the state of a row."""
        return self.kind(*map(self.values.__getitem__, row.tolist()))
