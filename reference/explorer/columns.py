"""The columns of a model's states: one for each field, and for each field of a dataclass in a field."""

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

from mqproof.reference.explorer.fingerprint import field_names


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a dataclass or a named tuple, in the order of its fields."""

    kind: type[Any]
    fields: dict[str, "int | Columns"]
    """By the name of a field: its column, or the columns of the dataclass that is always in the field."""

    def names(self) -> Iterator[str]:
        """Yield the name of each column."""
        for name, column in self.fields.items():
            if isinstance(column, int):
                yield name
            else:
                yield from (f"{name}.{inner}" for inner in column.names())

    def split(self, value: Any) -> Iterator[tuple[int, Any]]:
        """Yield the columns with their values in a value of this class.

        Raises:
            TypeError: a field does not have the class that it had in the state of `columns_of`.
        """
        if not isinstance(value, self.kind):
            raise TypeError(f"{value!r} is not of the class {self.kind.__qualname__}, as it is elsewhere")
        for name, column in self.fields.items():
            if isinstance(column, int):
                yield column, getattr(value, name)
            else:
                yield from column.split(getattr(value, name))

    def joined(self, values: Iterator[Any]) -> Any:
        """Return the value with the next of these values in its columns."""
        parts = [next(values) if isinstance(c, int) else c.joined(values) for c in self.fields.values()]
        return self.kind(*parts)


def columns_of(state: Any, first: int = 0) -> Columns:
    """Return the columns of a state, numbered from `first`."""
    fields: dict[str, int | Columns] = {}
    for name in field_names(type(state)):
        value = getattr(state, name)
        if is_dataclass(value):
            fields[name] = inner = columns_of(value, first)
            first += len(list(inner.names()))
        else:
            fields[name] = first
            first += 1
    return Columns(type(state), fields)
