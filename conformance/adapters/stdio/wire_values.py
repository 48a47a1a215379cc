"""Arguments and results of a target's methods as JSON values, and back, checked against the type hints.

A dataclass or named tuple is an object of its fields, an enumeration is its value, bytes are base64, and a
set or tuple is an array. Fields with a default may be missing in a result.
"""

import base64
import dataclasses
from collections.abc import Mapping, Sequence, Set
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

_NUMBERS_MAX: Final = 2**63


class ValueMismatchError(ValueError):
    """A JSON value does not have the expected type. The message says where, and what was expected."""


def to_json(value: Any) -> Any:
    """Return the value as JSON has it."""
    if isinstance(value, StrEnum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):  # a named tuple
        return {name: to_json(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): to_json(part) for name, part in value.items()}
    if isinstance(value, Set):
        return sorted(map(to_json, value))
    assert isinstance(value, Sequence), f"a {type(value).__name__} has no form in JSON"
    return [to_json(part) for part in value]


def from_json(value: Any, hint: Any, where: str = "result") -> Any:
    """Return the value that a hint describes.

    Raises:
        ValueMismatchError: the JSON value is another one.
    """
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _one_of(value, get_args(hint), where)
    if origin is tuple:
        return _tuple(value, get_args(hint), where)
    if origin in (set, frozenset, Set):
        (inner,) = get_args(hint)
        return frozenset(_array(value, inner, where))
    if origin is dict:
        _, inner = get_args(hint)
        _expect(isinstance(value, dict), value, "an object", where)
        return {name: from_json(part, inner, f"{where}.{name}") for name, part in value.items()}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        _expect(value in set(hint), value, f"one of {', '.join(hint)}", where)
        return hint(value)
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return _object(value, hint, where)
    return _plain(value, hint, where)


def _expect(holds: bool, value: Any, expected: str, where: str) -> None:
    if not holds:
        raise ValueMismatchError(f"{where} is {repr(value)[:80]}, {expected} expected")


def _plain(value: Any, hint: Any, where: str) -> Any:
    if hint is NoneType or hint is None:
        _expect(value is None, value, "null", where)
        return None
    if hint is bool:
        _expect(isinstance(value, bool), value, "true or false", where)
        return value
    if hint is int:
        is_int = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _NUMBERS_MAX
        _expect(is_int, value, "an integer of 64 bits", where)
        return value
    if hint is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        _expect(is_number, value, "a number", where)
        return float(value)
    _expect(isinstance(value, str), value, "base64" if hint is bytes else "a string", where)
    if hint is str:
        return value
    assert hint is bytes, f"{hint} has no form in JSON"
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise ValueMismatchError(f"{where} is {value[:80]!r}, base64 expected") from None


def _array(value: Any, inner: Any, where: str) -> list[Any]:
    _expect(isinstance(value, list), value, "an array", where)
    return [from_json(part, inner, f"{where}[{number}]") for number, part in enumerate(value)]


def _tuple(value: Any, inner: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if inner[1:] == (Ellipsis,):
        return tuple(_array(value, inner[0], where))
    _expect(isinstance(value, list) and len(value) == len(inner), value, f"an array of {len(inner)}", where)
    parts = zip(value, inner, strict=True)
    return tuple(from_json(part, hint, f"{where}[{number}]") for number, (part, hint) in enumerate(parts))


def _one_of(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    for hint in hints:
        try:
            return from_json(value, hint, where)
        except ValueMismatchError as error:
            mismatch = error
    raise mismatch


def _object(value: Any, kind: type[Any], where: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", where)
    hints = get_type_hints(kind)
    unknown = sorted(value.keys() - hints.keys())
    if unknown:
        raise ValueMismatchError(f"{where} has the field {unknown[0]!r}, expected {', '.join(hints)}")
    fields = {name: from_json(value[name], hints[name], f"{where}.{name}") for name in hints if name in value}
    try:
        return kind(**fields)
    except TypeError:
        optional = getattr(kind, "_field_defaults", {}) or {
            each.name: None
            for each in (dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ())
            if each.default is not dataclasses.MISSING
        }
        lacking = [name for name in hints if name not in fields and name not in optional]
        raise ValueMismatchError(f"{where} lacks {', '.join(lacking)}") from None
