"""SQL92 filters: which messages an expression over their properties selects.

An expression is parsed to a tree of tuples, which `evaluate` interprets. See
docs/reference/protocol/filters.md, "Grammar" and "Evaluation".
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Tree = tuple[Any, ...]
"""An operator and its operands: (name, ...). A leaf is ("property", name), ("text", text), ("number", type,
value) or ("truth", value)."""

INT, LONG, DOUBLE = "int", "long", "double"
_BITS: Final = {INT: 31, LONG: 63}

_WORDS: Final = re.compile(
    r"\s+|--.*|/\*[\s\S]*?\*/|(?P<word>'(?:[^']|'')*'|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+"
    r"|(?:0|[1-9]\d*)[lL]?|[A-Za-z_$][\w$]*|<>|<=|>=|[-+=<>(),])",
    re.ASCII,
)
_RESERVED: Final = {
    *("AND", "OR", "NOT", "IS", "NULL", "BETWEEN", "IN", "TRUE", "FALSE"),
    *("CONTAINS", "STARTSWITH", "ENDSWITH"),
}
_CONDITIONS: Final = {"or", "and", "not", "=", "<>", "is null", "is not null", "truth", "<", "<=", ">", ">=",
                      "between", "not between", "in", "not in", "test", "not test"}  # fmt: skip


class NotAnExpressionError(ValueError):
    """The text is not an expression."""


class NoResultError(ValueError):
    """The expression has no result for these properties."""


def selects(expression: str, properties: Mapping[str, str]) -> bool:
    """Return whether the expression selects a message: only a result of true does."""
    try:
        return evaluate(parse(expression), properties) is True
    except NoResultError:
        return False


# Parsing.


def parse(expression: str) -> Tree:
    """Return the tree of an expression. Raises NotAnExpressionError."""
    words = [*_split(expression), ""]
    tree, rest = _disjunction(words)
    if rest != [""]:
        raise NotAnExpressionError(f"{rest[0]!r} behind the expression")
    return _as_condition(tree)


def _split(expression: str) -> Iterator[str]:
    at = 0
    while at < len(expression):
        found = _WORDS.match(expression, at)
        if found is None:
            raise NotAnExpressionError(f"{expression[at]!r} at {at}")
        word, at = found.group("word"), found.end()
        if word is None:
            continue
        if word[0].isdigit() or word[0] == ".":
            if re.match(r"[\w$.]", expression[at : at + 1], re.ASCII):
                raise NotAnExpressionError(f"{word!r} runs into {expression[at]!r}")
            yield word
        else:
            yield word.upper() if word.upper() in _RESERVED else word


def _disjunction(words: list[str]) -> tuple[Tree, list[str]]:
    tree, words = _conjunction(words)
    while words[0] == "OR":
        right, words = _conjunction(words[1:])
        tree = ("or", _as_condition(tree), _as_condition(right))
    return tree, words


def _conjunction(words: list[str]) -> tuple[Tree, list[str]]:
    tree, words = _equation(words)
    while words[0] == "AND":
        right, words = _equation(words[1:])
        tree = ("and", _as_condition(tree), _as_condition(right))
    return tree, words


def _equation(words: list[str]) -> tuple[Tree, list[str]]:
    tree, words = _relation(words)
    while words[0] in ("=", "<>", "IS"):
        match words:
            case ["IS", "NULL", *rest]:
                tree, words = ("is null", tree), rest
            case ["IS", "NOT", "NULL", *rest]:
                tree, words = ("is not null", tree), rest
            case ["IS", *_]:
                raise NotAnExpressionError("IS without NULL")
            case [sign, *rest]:
                right, words = _relation(rest)
                if ("truth", None) in (tree, right):
                    raise NotAnExpressionError("NULL in a comparison")
                if tree[0] == "truth" and right[0] in ("text", "number"):
                    raise NotAnExpressionError("a truth value and another value in a comparison")
                tree = (sign, tree, right)
    return tree, words


def _relation(words: list[str]) -> tuple[Tree, list[str]]:
    tree, words = _unary(words)
    while True:
        match words:
            case ["<" | "<=" | ">" | ">=" as sign, *rest]:
                right, words = _unary(rest)
                tree = (sign, _in_order(tree), _in_order(right))
            case ["BETWEEN", *rest]:
                tree, words = _range("between", tree, rest)
            case ["NOT", "BETWEEN", *rest]:
                tree, words = _range("not between", tree, rest)
            case ["IN", *rest]:
                tree, words = _membership("in", tree, rest)
            case ["NOT", "IN", *rest]:
                tree, words = _membership("not in", tree, rest)
            case ["CONTAINS" | "STARTSWITH" | "ENDSWITH" as test, word, *rest]:
                tree, words = ("test", test, tree, _unquoted(word)), rest
            case ["NOT", "CONTAINS" | "STARTSWITH" | "ENDSWITH" as test, word, *rest]:
                tree, words = ("not test", test, tree, _unquoted(word)), rest
            case ["NOT", *_]:
                raise NotAnExpressionError("NOT behind a value")
            case _:
                return tree, words


def _range(name: str, tree: Tree, words: list[str]) -> tuple[Tree, list[str]]:
    low, words = _unary(words)
    if words[0] != "AND":
        raise NotAnExpressionError("BETWEEN without AND")
    high, words = _unary(words[1:])
    if name == "between" and low[0] == high[0] == "number" and _sign(low[1:], high[1:]) > 0:
        raise NotAnExpressionError("an empty range")
    return (name, _in_order(tree), _in_order(low), _in_order(high)), words


def _membership(name: str, tree: Tree, words: list[str]) -> tuple[Tree, list[str]]:
    if tree[0] != "property":
        raise NotAnExpressionError("IN behind a part that is not a property")
    if words[0] != "(":
        raise NotAnExpressionError("IN without (")
    texts = []
    separator = ","
    while separator == ",":
        texts.append(_unquoted(words[1]))
        separator, words = words[2], words[2:]
    if separator != ")":
        raise NotAnExpressionError("IN without )")
    return (name, tree, tuple(texts)), words[1:]


def _unary(words: list[str]) -> tuple[Tree, list[str]]:
    word, rest = words[0], words[1:]
    if word == "(":
        tree, rest = _disjunction(rest)
        if rest[0] != ")":
            raise NotAnExpressionError("( without )")
        return tree, rest[1:]
    if word in ("+", "-", "NOT"):
        tree, rest = _unary(rest)
        if word == "NOT":
            return ("not", _as_condition(tree)), rest
        return (tree if word == "+" else ("minus", tree)), rest
    return _leaf(word), rest


def _leaf(word: str) -> Tree:
    if word in ("TRUE", "FALSE", "NULL"):
        return ("truth", {"TRUE": True, "FALSE": False, "NULL": None}[word])
    if word.startswith("'"):
        return ("text", _unquoted(word))
    if word[:1].isdigit() or word[:1] == ".":
        return _number(word)
    if word in _RESERVED or not re.match(r"[A-Za-z_$]", word):
        raise NotAnExpressionError(f"{word!r} instead of a value")
    return ("property", word)


def _number(word: str) -> Tree:
    if re.fullmatch(r"\d+[lL]?", word):
        value = int(word.rstrip("lL"))
        if value >= 1 << _BITS[LONG]:
            raise NotAnExpressionError(f"{word} is too large")
        return ("number", INT if value < 1 << _BITS[INT] else LONG, value)
    if math.isinf(float(word)) or not float(word):
        raise NotAnExpressionError(f"{word} is not a double")
    return ("number", DOUBLE, float(word))


def _unquoted(word: str) -> str:
    if not word.startswith("'"):
        raise NotAnExpressionError(f"{word!r} instead of a text")
    return word[1:-1].replace("''", "'")


def _as_condition(tree: Tree) -> Tree:
    if tree[0] == "property":
        return ("cast", tree)
    if tree[0] not in _CONDITIONS and tree[0] != "cast":
        raise NotAnExpressionError("a value instead of a condition")
    return tree


def _in_order(tree: Tree) -> Tree:
    if tree[0] in _CONDITIONS or tree[0] in ("text", "cast"):
        raise NotAnExpressionError("only properties and numbers have an order")
    return tree


# Evaluation.


def evaluate(tree: Tree, properties: Mapping[str, str]) -> Any:
    """Return the value of a tree: True, False, None, a text, or a pair of a number's type and its value.

    Raises NoResultError.
    """
    match tree:
        case ("property", name):
            return properties.get(name)
        case ("text" | "truth", value):
            return value
        case ("number", kind, value):
            return kind, value
        case ("minus", part):
            value = evaluate(part, properties)
            return (value[0], -value[1]) if isinstance(value, tuple) else None
        case ("cast", part):
            return None if evaluate(part, properties) is None else False
        case ("or" | "and" as name, left, right):
            return _combined(name == "or", left, right, properties)
        case ("not", part):
            return _negated(evaluate(part, properties))
        case ("is null", part):
            return evaluate(part, properties) is None
        case ("is not null", part):
            return evaluate(part, properties) is not None
    return _compared(tree, properties)


def _compared(tree: Tree, properties: Mapping[str, str]) -> bool | None:
    match tree:
        case ("=", left, right):
            return _equal(evaluate(left, properties), evaluate(right, properties))
        case ("<>", left, right):
            return _negated(_equal(evaluate(left, properties), evaluate(right, properties)))
        case ("between", part, low, high):
            return _combined(False, (">=", part, low), ("<=", part, high), properties)
        case ("not between", part, low, high):
            return _combined(True, ("<", part, low), (">", part, high), properties)
        case ("in", part, texts):
            value = evaluate(part, properties)
            return None if value is None else value in texts
        case ("not in", part, texts):
            value = evaluate(part, properties)
            return None if value is None else value not in texts
        case ("test" | "not test" as name, test, part, wanted):
            value = evaluate(part, properties)
            if not isinstance(value, str) or not wanted:
                return False
            return _passes(test, value, wanted) is (name == "test")
    sign, left, right = tree
    first, second = evaluate(left, properties), evaluate(right, properties)
    if first is None or second is None:
        return None
    if isinstance(first, str) and isinstance(second, str):
        first, second = (DOUBLE, _double(first)), (DOUBLE, _double(second))
    order = _sign(*_same_type(first, second))
    results: dict[str, bool] = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return results[sign]


def _passes(test: str, text: str, wanted: str) -> bool:
    place = text.rfind(wanted) if test == "ENDSWITH" else text.find(wanted)
    if test == "CONTAINS":
        return place >= 0
    return place == (0 if test == "STARTSWITH" else len(text) - len(wanted)) and place >= 0


def _combined(decisive: bool, left: Tree, right: Tree, properties: Mapping[str, str]) -> bool | None:
    """Return `left OR right` if `decisive` is true, `left AND right` if it is false."""
    first: bool | None = evaluate(left, properties)
    if first is decisive:
        return decisive
    second: bool | None = evaluate(right, properties)
    if second is decisive:
        return decisive
    return None if None in (first, second) else not decisive


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _equal(left: Any, right: Any) -> bool | None:
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if type(left) is type(right) and not isinstance(left, tuple):
        return bool(left == right)
    if isinstance(left, bool) and isinstance(right, str):
        raise NoResultError("a text behind a truth value")
    if isinstance(left, str) and isinstance(right, bool):
        return (left.casefold() == "true") == right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return _sign(*_same_type(left, right)) == 0


def _same_type(left: Any, right: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Return two numbers; a text becomes a number of the other's type."""
    if isinstance(left, str):
        left = right[0], _parsed(left, right[0])
    if isinstance(right, str):
        right = left[0], _parsed(right, left[0])
    return left, right


def _parsed(text: str, kind: str) -> int | float:
    if kind == DOUBLE:
        return _double(text)
    if not re.fullmatch(r"[-+]?\d+", text) or not -(1 << _BITS[kind]) <= int(text) < 1 << _BITS[kind]:
        raise NoResultError(f"{text!r} is no {kind}")
    return int(text)


def _double(text: str) -> float:
    stripped = re.sub(r"^[\0- ]+|[\0- ]+$", "", text)
    if re.fullmatch(r"[-+]?(NaN|Infinity)", stripped):
        return float(stripped)
    number = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[fFdD]?"
    if re.fullmatch(number, stripped, re.ASCII):
        return float(stripped.rstrip("fFdD"))
    digits = r"([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)"
    if re.fullmatch(rf"[-+]?0[xX]{digits}[pP][-+]?[0-9]+[fFdD]?", stripped):
        mantissa, _, exponent = stripped.lower().partition("p")
        try:
            return float.fromhex(f"{mantissa}p{exponent.rstrip('fd')}")
        except OverflowError:
            return -math.inf if stripped.startswith("-") else math.inf
    raise NoResultError(f"{text!r} is not a double")


def _sign(left: tuple[str, Any], right: tuple[str, Any]) -> int:
    """Compare two numbers: whole ones exactly, others as doubles in Java's order."""
    (kind, first), (other, second) = left, right
    if DOUBLE not in (kind, other):
        return int(first > second) - int(first < second)
    keys = [(math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
            for value in (float(first), float(second))]  # fmt: skip
    if math.isnan(float(first)) and math.isnan(float(second)):
        return 0
    return int(keys[0] > keys[1]) - int(keys[0] < keys[1])
