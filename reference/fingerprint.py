"""A fingerprint of a state that is the same in every process, on every machine and on every run.

Python's own hash is salted, and so says nothing to another process. States that are equal have equal
fingerprints; that two others share one of 128 bits is less likely than a broken machine.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final

from reference.model import StateT

SIZE: Final = 16
"""Bytes of a fingerprint."""

_MEMO_MAX: Final = 1 << 18


def fingerprint(state: StateT) -> bytes:
    """Of a state, a dataclass of strings, integers, booleans, None, and tuples, frozensets and dataclasses of
    these.

    Raises:
        TypeError: a value of another type.
    """
    if len(_memo) > _MEMO_MAX:
        _memo.clear()
    return _digest(b"".join(map(_memo.__getitem__, values_of(type(state))(state))))


@cache
def values_of(kind: type[Any]) -> Callable[[Any], tuple[Hashable, ...]]:
    """What takes a state of this class apart into its fields' values; `kind(*values)` makes it again."""
    names = [field.name for field in fields(kind)]
    return attrgetter(*names) if len(names) > 1 else lambda state: (getattr(state, names[0]),)


class _Memo(dict[Hashable, bytes]):
    """Digests by value: a step changes few fields, so that nearly all values have been seen before."""

    def __missing__(self, value: Hashable) -> bytes:
        digest = self[value] = _digest(_encoded(value))
        return digest


_memo: Final = _Memo()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=SIZE).digest()


def _encoded(value: Any) -> bytes:
    """Injective up to equality: True is 1, and a named tuple is its tuple."""
    match value:
        case str():
            return b"s" + value.encode()
        case int():
            return b"i%d" % value
        case None:
            return b"n"
        case tuple():
            return b"t" + b"".join(map(_memo.__getitem__, value))
        case frozenset():
            return b"f" + b"".join(sorted(map(_memo.__getitem__, value)))
    if is_dataclass(value):
        kind: Any = type(value)
        return (
            b"d"
            + kind.__qualname__.encode()
            + b":"
            + b"".join(map(_memo.__getitem__, values_of(kind)(value)))
        )
    raise TypeError(f"a state may not hold a {type(value).__name__}: {value!r}")
