"""Converts values of the reference models to JSON types: numbers, texts, lists and objects."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any


# Two named tuples of different types may be equal, and have other names: the type is part of the key.
@lru_cache(maxsize=1 << 16, typed=True)
def _plain_fields(value: Any) -> dict[str, Any]:
    names = value._fields if hasattr(value, "_fields") else [field.name for field in fields(value)]
    return {name: plain(getattr(value, name)) for name in names}


def plain(value: Any) -> Any:
    """Convert a value of a reference model to JSON types; a set becomes a sorted list."""
    if is_dataclass(value) or hasattr(value, "_fields"):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(plain, value), key=order)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def order(value: Any) -> str:
    """Return a sort key of a value that does not depend on the iteration order of sets."""
    return json.dumps(plain(value), sort_keys=True)
