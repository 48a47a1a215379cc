"""The functions that an SQL92 expression becomes, and the values they compare.

A value is True, False, a text, a `Number`, or None for a property that the message lacks. See
docs/reference/protocol/filters.md, "Evaluation".
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Properties = Mapping[str, str]


class EvaluationError(ValueError):
    """The expression has no result for this message, such as a comparison of `abc` with a number."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an expression, with the type that texts are converted to."""

    value: int | float
    bits: int
    """32 or 64 for a whole number; 0 for a decimal number."""


Value = bool | str | Number | None
Operand = Callable[[Properties], Value]
Truth = Callable[[Properties], bool | None]

_WHOLE: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(
    r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)
_DIGITS_MAX: Final = 400
"""The longest text that is converted to a number: longer ones cost time and are out of any range."""
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))


def whole(text: str, bits: int) -> int:
    """Return the whole number in a text. Raises EvaluationError."""
    if len(text) <= _DIGITS_MAX and _WHOLE.fullmatch(text):
        value = int(text)
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return value
    raise EvaluationError(f"{text[:40]!r} is not a whole number of {bits} bits")


def decimal(text: str) -> float:
    """Return the decimal number in a text. Raises EvaluationError."""
    text = text.strip(_JAVA_SPACE)
    if len(text) <= _DIGITS_MAX:
        if found := _DECIMAL.fullmatch(text):
            sign, name, digits = found.groups()
            return float(sign + (name or digits))
        if _HEXADECIMAL.fullmatch(text):
            try:
                return float.fromhex(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
            except OverflowError:
                return float("-inf" if text.startswith("-") else "inf")
    raise EvaluationError(f"{text[:40]!r} is not a number")


def order_of(left: float, right: float) -> int:
    """Compare decimals as Java does: NaN is the greatest, and -0.0 is less than 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    first, second = _sortable(left), _sortable(right)
    return (first > second) - (first < second)


def _sortable(value: float) -> int:
    if value != value:
        return 1 << 63
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits)


def equals(left: Value, right: Value) -> bool | None:
    """Return `left = right`."""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return _equal_truths(left, right)
    return _order(left, right) == 0


def _equal_truths(left: Value, right: Value) -> bool:
    if isinstance(left, bool) and isinstance(right, bool):
        return left is right
    if isinstance(left, str):
        return (left.lower() == "true") is right
    if isinstance(right, str):
        raise EvaluationError("a truth value is compared with a text on its right")
    return False


def order(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1 for less, equal, greater; None if one of the two is missing."""
    if left is None or right is None:
        return None
    return _order(left, right)


def _order(left: Value, right: Value) -> int:
    if isinstance(left, str) and isinstance(right, Number) and right.bits:  # the most frequent case
        number = whole(left, right.bits)
        return (number > right.value) - (number < right.value)
    if isinstance(left, str) and isinstance(right, str):
        return order_of(decimal(left), decimal(right))
    if isinstance(left, str) and isinstance(right, Number):
        return _numbers(_converted(left, right), right)
    if isinstance(left, Number) and isinstance(right, str):
        return _numbers(left, _converted(right, left))
    if isinstance(left, Number) and isinstance(right, Number):
        return _numbers(left, right)
    raise EvaluationError("a truth value has no order")


def _converted(text: str, like: Number) -> Number:
    return Number(whole(text, like.bits) if like.bits else decimal(text), like.bits)


def _numbers(left: Number, right: Number) -> int:
    if left.bits and right.bits:
        return (left.value > right.value) - (left.value < right.value)
    return order_of(float(left.value), float(right.value))


def truth_of(value: Value) -> bool | None:
    """Return the truth of a value that stands in place of a condition: texts and numbers are never true."""
    return value if value is None or isinstance(value, bool) else False


# The conditions.


def all_of(left: Truth, right: Truth) -> Truth:
    def condition(properties: Properties) -> bool | None:
        first = left(properties)
        if first is False:
            return False
        second = right(properties)
        return second if first or second is False else None

    return condition


def any_of(left: Truth, right: Truth) -> Truth:
    def condition(properties: Properties) -> bool | None:
        first = left(properties)
        if first:
            return True
        second = right(properties)
        return second if first is False or second else None

    return condition


def opposite(of: Truth) -> Truth:
    def condition(properties: Properties) -> bool | None:
        found = of(properties)
        return None if found is None else not found

    return condition


def equal(left: Operand, right: Operand) -> Truth:
    return lambda properties: equals(left(properties), right(properties))


def ordered(left: Operand, right: Operand, accepted: Callable[[int], bool]) -> Truth:
    def condition(properties: Properties) -> bool | None:
        found = order(left(properties), right(properties))
        return None if found is None else accepted(found)

    return condition


def missing(operand: Operand) -> Truth:
    return lambda properties: operand(properties) is None


def listed(operand: Operand, texts: frozenset[str]) -> Truth:
    def condition(properties: Properties) -> bool | None:
        found = operand(properties)
        return None if found is None else found in texts

    return condition


def text_test(operand: Operand, wanted: str, test: Callable[[str, str], bool], *, negated: bool) -> Truth:
    """CONTAINS and its relatives: false, and not unknown, if there is no text or nothing is searched for."""

    def condition(properties: Properties) -> bool | None:
        found = operand(properties)
        return isinstance(found, str) and bool(wanted) and test(found, wanted) is not negated

    return condition
