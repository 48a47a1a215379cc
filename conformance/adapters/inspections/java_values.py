"""Reads the JSON of Java's servers, in which keys may be numbers or objects."""

import json
from typing import Any, Final

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = " \t\r\n"


def read(text: str | bytes) -> Any:
    """Return the value; keys that are objects become tuples of their sorted members.

    Raises:
        ValueError: the text is not one value.
    """
    found = text.decode() if isinstance(text, bytes) else text
    value, end = _value(found, 0)
    if found[end:].strip():
        raise ValueError(f"more text behind the value: {found[end : end + 40]!r}")
    return value


def _value(text: str, at: int) -> tuple[Any, int]:
    at = _skipped(text, at)
    match text[at : at + 1]:
        case "{":
            return _table(text, at + 1)
        case "[":
            return _list(text, at + 1)
    return _DECODER.raw_decode(text, at)


def _table(text: str, at: int) -> tuple[dict[Any, Any], int]:
    found: dict[Any, Any] = {}
    at = _skipped(text, at)
    while text[at : at + 1] != "}":
        key, at = _value(text, at)
        at = _after(text, at, ":")
        found[_hashable(key)], at = _value(text, at)
        at = _skipped(text, at)
        if text[at : at + 1] != "}":
            at = _skipped(text, _after(text, at, ","))
    return found, at + 1


def _list(text: str, at: int) -> tuple[list[Any], int]:
    found = []
    at = _skipped(text, at)
    while text[at : at + 1] != "]":
        value, at = _value(text, at)
        found.append(value)
        at = _skipped(text, at)
        if text[at : at + 1] != "]":
            at = _skipped(text, _after(text, at, ","))
    return found, at + 1


def _hashable(key: Any) -> Any:
    return tuple(sorted(key.items())) if isinstance(key, dict) else key


def _skipped(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _SPACE:
        at += 1
    return at


def _after(text: str, at: int, sign: str) -> int:
    at = _skipped(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign!r} expected, {text[at : at + 40]!r} found")
    return at + 1


def standard(value: Any) -> bytes:
    """Return the value as strictly standard JSON: sorted members, `/` as `\\/`, and only ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.replace("/", "\\/").replace("\x7f", "\\u007f").encode()
