"""States that record which of their fields a function reads and writes.

A function of a state, such as an action, is deterministic. Its result therefore depends only on the fields
that it read, in the order in which it read them. What it does not read cannot change the result.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from mqproof.reference.explorer.fingerprint import field_names

_OWN: Final = frozenset({"watch", "written"})


class Watch:
    """Supplies the field values of one state, and records the fields that are read, in order."""

    __slots__ = ("_values", "read")

    def __init__(self, values: Callable[[int], Any]) -> None:
        self._values = values
        self.read: dict[int, Any] = {}
        """The values of the fields that were read, by the field's place in the state."""

    def value(self, place: int) -> Any:
        if place not in self.read:
            self.read[place] = self._values(place)
        return self.read[place]


def watched(kind: type[Any], watch: Watch) -> Any:
    """Return a state of this class, a dataclass or a named tuple, whose fields are read through `watch`."""
    return _made(_watched_class(kind), watch, {})


def written(after: Any) -> dict[int, Any]:
    """Return the fields that a function has set in its result, by place.

    A result that was made field by field, and not from a watched state, has all of them.
    """
    if hasattr(after, "watch"):
        changes: dict[int, Any] = after.written
        return changes
    return {place: getattr(after, name) for place, name in enumerate(field_names(type(after)))}


def _made(kind: Any, watch: Watch, changes: dict[int, Any]) -> Any:
    new = tuple.__new__(kind) if issubclass(kind, tuple) else object.__new__(kind)
    new.__dict__.update(watch=watch, written=changes)
    return new


@cache
def _watched_class(kind: type[Any]) -> type[Any]:
    """Return a subclass with a property for each field.

    Its instances hold no values. Whatever depends on the whole state reads all of its fields.
    """
    names = field_names(kind)
    places = {name: place for place, name in enumerate(names)}
    assert not _OWN & set(names), "a field has the name of a recorder"

    def values(state: Any) -> tuple[Any, ...]:
        return tuple(getattr(state, name) for name in names)

    def changed(state: Any, /, **changes: Any) -> Any:
        if unknown := changes.keys() - places.keys():
            raise TypeError(f"{kind.__qualname__} has no field {min(unknown)!r}")
        both = state.written | {places[name]: value for name, value in changes.items()}
        return _made(type(state), state.watch, both)

    def iterate(state: Any) -> Iterator[Any]:
        return iter(values(state))

    body: dict[str, Any] = {name: _property(place) for name, place in places.items()}
    body |= {
        "_replace": changed,
        "__eq__": lambda state, other: values(state) == values(other),
        "__hash__": lambda state: hash(values(state)),
    }
    if issubclass(kind, tuple):
        body |= {
            "__iter__": iterate,
            "__getitem__": lambda state, key: values(state)[key],
            "__len__": lambda _state: len(names),
        }
    return type(f"Watched{kind.__name__}", (kind,), body)


def _property(place: int) -> property:
    def get(state: Any) -> Any:
        if place in state.written:
            return state.written[place]
        return state.watch.value(place)

    return property(get)
