"""A fingerprint of a state that is the same in every process, on every machine and in every run.

Python's own hash is salted, so it differs between processes. Equal states have equal fingerprints. The
probability that two different states share one of 128 bits is lower than that of a hardware error.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from operator import attrgetter, getitem
from typing import Any, Final

from mqproof.reference.model import StateT

BITS: Final = 128
_MASK: Final = (1 << BITS) - 1

_MEMO_MAX: Final = 1 << 16
"""The number of values remembered per field, so that this memory does not grow with the states."""


def fingerprint(state: StateT) -> int:
    """Return the fingerprint of a state.

    A state is a dataclass or named tuple of strings, integers, booleans, None, and tuples, frozensets and
    dataclasses of these. The fingerprint is the sum of a random number for each field's value, as in
    Zobrist's hashing of chess positions. A step changes few fields, so nearly all numbers are already known.

    Raises:
        TypeError: a value of another type.
    """
    kind = type(state)
    return sum(map(getitem, _numbers(kind), values_of(kind)(state))) & _MASK


@cache
def values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that splits a state of this class into its field values.

    `kind(*values)` makes the state again.
    """
    if issubclass(kind, tuple):
        return tuple
    names = field_names(kind)
    return attrgetter(*names) if len(names) > 1 else lambda state: (getattr(state, names[0]),)


@cache
def _numbers(kind: type[Any]) -> tuple["_Numbers", ...]:
    return tuple(map(_Numbers, field_names(kind)))


def field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or named tuple, in order."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else tuple(kind._fields)


def random_number(field: str, value: Hashable) -> int:
    """Return the random number of one value of one field. Raises TypeError as `fingerprint`."""
    return int.from_bytes(_digest(field.encode() + b"=" + _encoded(value)), "big")


class _Numbers(dict[Hashable, int]):
    """The random number of each value of one field."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def __missing__(self, value: Hashable) -> int:
        if len(self) >= _MEMO_MAX:
            self.clear()
        number = self[value] = random_number(self.field, value)
        return number


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=BITS // 8).digest()


def _encoded(value: Any) -> bytes:
    """Encode a value. Only equal values have equal encodings: True equals 1, a named tuple its tuple."""
    match value:
        case str():
            return b"s" + value.encode()
        case int():
            return b"i%d" % value
        case None:
            return b"n"
        case tuple():
            return b"t" + _joined(value)
        case frozenset():
            return b"f" + b"".join(sorted(_digest(_encoded(item)) for item in value))
    if is_dataclass(value):
        kind: Any = type(value)
        name: str = kind.__qualname__
        return b"d" + name.encode() + b":" + _joined(values_of(kind)(value))
    raise TypeError(f"a state may not hold a {type(value).__name__}: {value!r}")


def _joined(values: tuple[Any, ...]) -> bytes:
    """Return the joined digests. They all have one length, so that the boundaries of the values are clear."""
    return b"".join(_digest(_encoded(value)) for value in values)
