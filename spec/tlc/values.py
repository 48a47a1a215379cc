"""TLA+ values as frozen, hashable Python values, parsed from TLC's text and written back as TLA+.

| TLA+ | Python |
|---|---|
| `1`, `-3`, `TRUE`, `"text"` | int, bool, str |
| model value `n1` | ModelValue |
| `{1, 2}`, `1..4` | frozenset |
| `<<1, 2>>`, a function over 1..n | tuple |
| `[a |-> 1]`, `(n1 :> 0 @@ n2 :> 1)` | Function |

As in TLA+, a record is a function over strings and the empty function is the empty tuple. In Python, True
equal to 1 where TLC refuses to compare them: harmless, because no TLA+ variable can hold both.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast


class ValueSyntaxError(ValueError):
    """The text is not a value as TLC prints it. The message shows the place."""


@dataclass(frozen=True, slots=True)
class ModelValue:
    """A constant that equals only itself, such as n1 in `Nodes = {n1, n2}`."""

    name: str

    def __repr__(self) -> str:
        return self.name


class Function(Mapping["Value", "Value"]):
    """A TLA+ function or record: an immutable mapping that hashes and compares by content."""

    __slots__ = ("_hash", "_items")

    # Any for the keys: Mapping is invariant in them, and a dict with str keys should be accepted.
    def __init__(self, items: Mapping[Any, "Value"]) -> None:
        self._items: dict[Value, Value] = dict(items)
        self._hash: int | None = None

    def __getitem__(self, key: "Value") -> "Value":
        return self._items[key]

    def __iter__(self) -> Iterator["Value"]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._items == other._items

    def __repr__(self) -> str:
        return show(self)


Value: TypeAlias = int | bool | str | ModelValue | frozenset["Value"] | tuple["Value", ...] | Function

State: TypeAlias = Function
"""Maps variable names to values."""

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<number>-?\d+)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<sign><<|>>|\|->|:>|@@|\.\.|[\[\]{}(),]))"
)
_VARIABLE: Final = re.compile(r"^(?:/\\ )?(\w+) = ", re.MULTILINE)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*\Z")


@lru_cache(maxsize=1 << 17)
def parse(text: str) -> Value:
    """Return the value that TLC printed as `text`.

    Results are cached, because states have many parts in common.

    Raises:
        ValueSyntaxError: the text is not a value, or more than one.
    """
    return _Reader(text).whole()


def parse_state(text: str) -> State:
    r"""Return the state that TLC printed as `/\ x = 1` lines (or one `x = 1`, if there is one variable).

    Raises:
        ValueSyntaxError: no variable was found, or one holds what is not a value.
    """
    starts = list(_VARIABLE.finditer(text))
    if not starts:
        raise ValueSyntaxError(f"no variable in the state {text.strip()[:80]!r}")
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return Function(
        {start[1]: parse(text[start.end() : end].rstrip()) for start, end in zip(starts, ends, strict=True)}
    )


def show(value: object) -> str:
    """Return the value as a TLA+ expression, with sets and functions in a canonical order.

    Plain Python is accepted too: dict for records and functions, list for sequences, set for sets.

    Raises:
        TypeError: a value that has no TLA+ form here (None, float, bytes, ...).
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str():
            return '"' + _escape(value) + '"'
        case ModelValue():
            return value.name
        case Mapping():
            return _show_function(value)
        case Sequence() if not isinstance(value, bytes | bytearray):
            return "<<" + ", ".join(map(show, value)) + ">>"
        case Set():
            return "{" + ", ".join(sorted(map(show, value), key=_natural)) + "}"
    raise TypeError(f"{value!r} of type {type(value).__name__} is no TLA+ value")


def _show_function(function: Mapping[object, object]) -> str:
    if not function:
        return "<<>>"
    if all(isinstance(key, str) and _IDENTIFIER.match(key) for key in function):
        names = cast("Mapping[str, object]", function)
        return "[" + ", ".join(f"{name} |-> {show(names[name])}" for name in sorted(names)) + "]"
    pairs = sorted(((show(key), show(item)) for key, item in function.items()), key=lambda p: _natural(p[0]))
    return "(" + " @@ ".join(f"{key} :> {item}" for key, item in pairs) + ")"


def _natural(text: str) -> tuple[int, str]:
    """Return a sort key that puts 2 before 10."""
    return (int(text), "") if text.lstrip("-").isdecimal() else (0, text)


def _escape(text: str) -> str:
    for raw, letter in (("\\", "\\"), ('"', '"'), *((raw, letter) for letter, raw in _ESCAPES.items())):
        text = text.replace(raw, "\\" + letter)
    return text


class _Reader:
    """Parses the tokens of one value by recursive descent."""

    __slots__ = ("_at", "_kinds", "_text", "_words")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kinds: list[str] = []
        self._words: list[str] = []
        end = 0
        for token in _TOKEN.finditer(text):
            if token.start() != end:
                break
            self._kinds.append(cast("str", token.lastgroup))
            self._words.append(token[cast("str", token.lastgroup)])
            end = token.end()
        if text[end:].strip():
            raise ValueSyntaxError(f"not a TLA+ value: {text[end : end + 40]!r} in {text[:80]!r}")
        self._kinds.append("end")
        self._words.append("the end")

    def whole(self) -> Value:
        value = self._value()
        if self._kinds[self._at] != "end":
            raise self._unexpected("the end")
        return value

    def _value(self) -> Value:
        kind, word = self._kinds[self._at], self._words[self._at]
        self._at += 1
        if kind == "number":
            return self._interval(int(word)) if self._words[self._at] == ".." else int(word)
        if kind == "string":
            return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), word[1:-1])
        if kind == "word":
            return {"TRUE": True, "FALSE": False}.get(word, ModelValue(word))
        if word == "<<":
            return tuple(self._list(">>"))
        if word == "{":
            return frozenset(self._list("}"))
        if word == "[":
            return self._pairs("|->", ",", "]")
        if word == "(":
            return self._pairs(":>", "@@", ")")
        self._at -= 1
        raise self._unexpected("a value")

    def _interval(self, low: int) -> frozenset[Value]:
        self._at += 1
        high = self._value()
        if not isinstance(high, int):
            raise self._unexpected("the end of an interval")
        return frozenset(range(low, high + 1))

    def _list(self, close: str) -> list[Value]:
        values: list[Value] = []
        if self._words[self._at] == close:
            self._at += 1
            return values
        while True:
            values.append(self._value())
            if self._take(",", close) == close:
                return values

    def _pairs(self, arrow: str, separator: str, close: str) -> Function:
        items: dict[Value, Value] = {}
        while True:
            # A record's field is a bare word, which represents a string.
            key: Value = self._field() if arrow == "|->" else self._value()
            self._take(arrow)
            items[key] = self._value()
            if self._take(separator, close) == close:
                return Function(items)

    def _field(self) -> str:
        if self._kinds[self._at] != "word":
            raise self._unexpected("a field name")
        self._at += 1
        return self._words[self._at - 1]

    def _take(self, *expected: str) -> str:
        if self._kinds[self._at] != "sign" or self._words[self._at] not in expected:
            raise self._unexpected(" or ".join(expected))
        self._at += 1
        return self._words[self._at - 1]

    def _unexpected(self, expected: str) -> ValueSyntaxError:
        return ValueSyntaxError(
            f"not a TLA+ value: {expected} expected, {self._words[self._at]} found in {self._text[:80]!r}"
        )
