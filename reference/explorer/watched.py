"""States that record which of their columns a function reads and writes.

A function of a state, such as an action, is deterministic. Its result therefore depends only on the columns
that it read, in the order in which it read them. What it does not read cannot change the result.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from mqproof.reference.explorer.columns import Columns

_OWN: Final = frozenset({"watch", "changes"})
_OF_TUPLES: Final = (
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__contains__", "__iter__"),
    *("__getitem__", "__add__", "__mul__", "__rmul__", "index", "count"),
)
"""The methods of a tuple that read its elements. A watched named tuple has no elements, only fields."""


class UnsteadyError(RuntimeError):
    """A function of a model is not deterministic: it read other fields than before in an equal situation."""

    def __str__(self) -> str:
        return "a function of the model read different fields in equal situations"


class Watch:
    """Supplies the values of one row, and records the columns that are read, in order."""

    __slots__ = ("read", "row", "values")

    def __init__(self, row: Sequence[int], values: Sequence[Any]) -> None:
        self.row = row
        self.values = values
        """The value of each number in the row."""
        self.read: dict[int, int] = {}
        """By column that was read: the number there."""


def watched(columns: Columns, watch: Watch) -> Any:
    """Return a state whose fields are read through `watch`."""
    return _made(_watched_class(columns), watch, {})


def written(columns: Columns, after: Any) -> dict[int, Any]:
    """Return what a function has set in its result, by column.

    A result that is not a changed watched state has all columns.
    """
    if type(after) is not _watched_class(columns):
        return dict(columns.split(after))
    changes: dict[int, Any] = {}
    for name, value in after.changes.items():
        column = columns.fields[name]
        changes |= {column: value} if isinstance(column, int) else written(column, value)
    return changes


def _made(kind: Any, watch: Watch, changes: dict[str, Any]) -> Any:
    new = tuple.__new__(kind) if issubclass(kind, tuple) else object.__new__(kind)
    new.__dict__.update(changes, watch=watch, changes=changes)
    return new


class _Unread:
    """A field that was not read yet. Its value then becomes an attribute, which is found before this."""

    __slots__ = ("column", "name")

    def __init__(self, name: str, column: int | Columns) -> None:
        self.name = name
        self.column = column

    def __get__(self, state: Any, owner: type[Any]) -> Any:
        watch, column = state.watch, self.column
        if isinstance(column, int):
            number = watch.read[column] = watch.row[column]
            value = watch.values[number]
        else:
            value = watched(column, watch)
        state.__dict__[self.name] = value
        return value


@cache
def _watched_class(columns: Columns) -> type[Any]:
    """Return a subclass of the state's class whose fields are read through a watch.

    What depends on the whole state, such as its hash, reads all fields. A call of the class, as
    `dataclasses.replace` makes it, returns an ordinary state.
    """
    names = tuple(columns.fields)
    assert not _OWN & set(names), "a field has the name of a recorder"

    def values(state: Any) -> tuple[Any, ...]:
        return tuple(getattr(state, name) for name in names)

    def changed(state: Any, /, **changes: Any) -> Any:
        if unknown := changes.keys() - columns.fields.keys():
            raise TypeError(f"{columns.kind.__qualname__} has no field {min(unknown)!r}")
        return _made(type(state), state.watch, state.changes | changes)

    body: dict[str, Any] = {name: _Unread(name, column) for name, column in columns.fields.items()}
    body |= {
        "__new__": lambda _kind, *values, **named: columns.kind(*values, **named),
        "_replace": changed,
        "__eq__": lambda state, other: isinstance(other, columns.kind) and values(state) == values(other),
        "__hash__": lambda state: hash(values(state)),
    }
    if issubclass(columns.kind, tuple):
        body |= {
            "__len__": lambda _state: len(names),
            "__radd__": lambda state, other: other + values(state),
            "__repr__": lambda state: repr(columns.kind(*values(state))),
        }
        inherited = (name for name in _OF_TUPLES if getattr(columns.kind, name) is getattr(tuple, name))
        body |= {name: _of_values(name, values) for name in inherited}
    return type(f"Watched{columns.kind.__name__}", (columns.kind,), body)


def _of_values(name: str, values: Callable[[Any], tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a method of a tuple that acts on the values of a watched state's fields."""
    method = getattr(tuple, name)

    def call(state: Any, *arguments: Any) -> Any:
        plain = (tuple(each) if isinstance(each, tuple) else each for each in arguments)
        return method(values(state), *plain)

    return call
