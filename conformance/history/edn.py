"""The subset of EDN that histories need: maps, vectors, strings, numbers, keywords, nil, true and false."""

import re
from typing import Any, Final


class Keyword(str):
    """An EDN keyword, `:name`."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((":", str(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyword) and str(self) == str(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


_TOKEN: Final = re.compile(r'[\s,]*([\[\]{}]|"(?:\\.|[^"\\])*"|[^\s,\[\]{}"]+)')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_WORDS: Final[dict[str, Any]] = {"nil": None, "true": True, "false": False}


def write(value: Any) -> str:
    """Return the value as EDN. Supported are dict, list, tuple, str, int, bool, None and Keyword."""
    match value:
        case Keyword():
            return f":{str.__str__(value)}"
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case str():
            text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            return f'"{text}"'
        case dict():
            return "{" + ", ".join(f"{write(key)} {write(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + " ".join(map(write, value)) + "]"
    return str(value)


def read(text: str) -> Any:
    """Return the single value in the text.

    Raises:
        ValueError: it is not EDN of the supported subset, or there is not exactly one value.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r'"(?:\\.|[^"\\])*"|[\s,]+', lambda m: m[0] if m[0][0] == '"' else "", text):
        raise ValueError(f"{text[:40]!r} is not EDN")
    tokens.reverse()
    value = _value(tokens)
    if tokens:
        raise ValueError(f"{tokens[-1]!r} follows the value")
    return value


def _value(tokens: list[str]) -> Any:
    if not tokens:
        raise ValueError("the value is incomplete")
    token = tokens.pop()
    if token == "[":
        return _until("]", tokens)
    if token == "{":
        items = _until("}", tokens)
        if len(items) % 2:
            raise ValueError("a map has a key without a value")
        return dict(zip(items[::2], items[1::2], strict=True))
    if token[0] == '"':
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token[1:-1])
    if token[0] == ":":
        return Keyword(token[1:])
    if token in _WORDS:
        return _WORDS[token]
    return int(token.removesuffix("N"))


def _until(end: str, tokens: list[str]) -> list[Any]:
    items = []
    while tokens and tokens[-1] != end:
        items.append(_value(tokens))
    if not tokens:
        raise ValueError(f"{end} is missing")
    tokens.pop()
    return items
