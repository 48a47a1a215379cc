"""Compiles an SQL92 expression over message properties, by recursive descent.

See docs/reference/protocol/filters.md, "Grammar". The result is a tree of functions. The memory of an
evaluation is in proportion to the depth of the tree, which is bounded.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mqproof.impl.filtering import predicates
from mqproof.impl.filtering.predicates import EvaluationError, Number, Operand, Properties, Truth, Value
from mqproof.impl.filtering.tokens import ExpressionError, Kind, Token, tokens

DEPTH_MAX: Final = 64
"""The most parentheses, signs and NOTs inside each other."""

_VALUES_MAX: Final = 8
"""The most properties of an expression whose decisions are remembered."""
_VALUE_BYTES_MAX: Final = 128
"""The most bytes of their values together."""
_DECISIONS_MAX: Final = 100
"""The most decisions that one expression remembers; with one more, it forgets them."""
_WHOLE_MAX: Final = (1 << 63) - 1
_INT_MAX: Final = (1 << 31) - 1
_ORDERS: Final[dict[str, Callable[[int], bool]]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_TRUTHS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of an expression."""

    operand: Operand
    constant: Value = None
    """The value of a plain literal."""
    is_constant: bool = False
    is_property: bool = False
    condition: Truth | None = None
    """The part as a condition; None if it is none, such as a number."""

    @property
    def is_condition(self) -> bool:
        """Whether it is a condition by itself. A property only becomes one where one is expected."""
        return self.condition is not None and not self.is_property


class Filter:
    """A compiled expression."""

    def __init__(self, text: str, condition: Truth, names: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        """The properties that it names; no others decide."""
        self._condition = condition
        self._decided: dict[tuple[bytes | None, ...], bool] = {}

    def matches(self, properties: Properties) -> bool:
        """Return whether the expression is true for the message. Unknown and an error are not true."""
        try:
            return self._condition(properties) is True
        except EvaluationError:
            return False

    def matches_values(self, values: tuple[bytes | None, ...]) -> bool:
        """Return whether it matches a message, by the values of the properties that it names, in UTF-8.

        Some decisions are remembered, because many messages have the same values.
        """
        is_match = self._decided.get(values)
        if is_match is None:
            pairs = zip(self.names, values, strict=True)
            is_match = self.matches({name: value.decode() for name, value in pairs if value is not None})
            self._remember(values, is_match)
        return is_match

    def _remember(self, values: tuple[bytes | None, ...], is_match: bool) -> None:
        if len(values) <= _VALUES_MAX and sum(len(value or b"") for value in values) <= _VALUE_BYTES_MAX:
            if len(self._decided) >= _DECISIONS_MAX:
                self._decided.clear()
            self._decided[values] = is_match

    def result(self, properties: Properties) -> bool | None:
        """Return the result, None for unknown. Raises EvaluationError."""
        return self._condition(properties)


@lru_cache(maxsize=1024)
def compiled(text: str) -> Filter:
    """Return the compiled expression.

    Raises:
        ExpressionError: the text is not an expression.
    """
    found = tokens(text)
    names = dict.fromkeys(token.text for token in found if token.kind is Kind.NAME)
    return Filter(text, _Parser(found).whole_expression(), tuple(names))


class _Parser:
    """Reads the tokens of one expression from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    def whole_expression(self) -> Truth:
        term = self._any()
        if self._next.kind is not Kind.END:
            raise self._unexpected("AND, OR or the end")
        return self._condition(term)

    # The levels of the grammar, from the weakest operator to the strongest.

    def _any(self) -> _Term:
        term = self._all()
        while self._take("OR"):
            term = _of(predicates.any_of(self._condition(term), self._condition(self._all())))
        return term

    def _all(self) -> _Term:
        term = self._equality()
        while self._take("AND"):
            term = _of(predicates.all_of(self._condition(term), self._condition(self._equality())))
        return term

    def _equality(self) -> _Term:
        term = self._comparison()
        while True:
            if self._next.is_one_of("=", "<>"):
                is_equal = self._advance().text == "="
                right = self._comparison()
                _check_equality(term, right)
                condition = predicates.equal(term.operand, right.operand)
                term = _of(condition if is_equal else predicates.opposite(condition))
            elif self._take("IS"):
                negated = self._take("NOT")
                self._expect("NULL")
                condition = predicates.missing(term.operand)
                term = _of(predicates.opposite(condition) if negated else condition)
            else:
                return term

    def _comparison(self) -> _Term:
        term = self._signed()
        while True:
            if self._next.is_one_of(*_ORDERS):
                sign = self._advance().text
                right = self._signed()
                _check_ordered(term)
                _check_ordered(right)
                term = _of(predicates.ordered(term.operand, right.operand, _ORDERS[sign]))
            elif self._next.is_one_of("BETWEEN", "IN", *_TEXT_TESTS):
                term = self._test(term, negated=False)
            elif self._next.is_one_of("NOT"):
                self._advance()
                term = self._test(term, negated=True)
            else:
                return term

    def _test(self, term: _Term, *, negated: bool) -> _Term:
        if self._take("BETWEEN"):
            return self._between(term, negated=negated)
        if self._take("IN"):
            if not term.is_property:
                raise ExpressionError("the left side of IN is not a property")
            condition = predicates.listed(term.operand, self._texts())
            return _of(predicates.opposite(condition) if negated else condition)
        if self._next.is_one_of(*_TEXT_TESTS):
            test = _TEXT_TESTS[self._advance().text]
            return _of(predicates.text_test(term.operand, self._text(), test, negated=negated))
        raise self._unexpected("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")

    def _between(self, term: _Term, *, negated: bool) -> _Term:
        low = self._signed()
        self._expect("AND")
        high = self._signed()
        for each in (term, low, high):
            _check_ordered(each)
        if not negated:
            _check_range(low, high)
        below, above = ("<", ">") if negated else (">=", "<=")
        first = predicates.ordered(term.operand, low.operand, _ORDERS[below])
        second = predicates.ordered(term.operand, high.operand, _ORDERS[above])
        return _of(predicates.any_of(first, second) if negated else predicates.all_of(first, second))

    def _signed(self) -> _Term:
        if self._next.is_one_of("+", "-", "NOT", "("):
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise ExpressionError(f"nested more than {DEPTH_MAX} levels deep")
            term = self._nested(self._advance().text)
            self._depth -= 1
            return term
        return self._literal()

    def _nested(self, opening: str) -> _Term:
        if opening == "(":
            term = self._any()
            self._expect(")")
            return term
        if opening == "+":
            return self._signed()
        if opening == "-":
            return _negative(self._signed())
        return _of(predicates.opposite(self._condition(self._signed())))

    def _literal(self) -> _Term:
        is_operator = self._next.kind is Kind.KEYWORD and self._next.text not in _TRUTHS
        if is_operator or self._next.kind in (Kind.SYMBOL, Kind.END):
            raise self._unexpected("a property, a value or (")
        token = self._advance()
        if token.kind is Kind.NAME:
            return _property(token.text)
        if token.kind is Kind.STRING:
            return _constant(token.text)
        if token.kind is Kind.KEYWORD:
            return _constant(_TRUTHS[token.text], is_truth=True)
        return _constant(_number(token))

    def _texts(self) -> frozenset[str]:
        self._expect("(")
        found = [self._text()]
        while self._take(","):
            found.append(self._text())
        self._expect(")")
        return frozenset(found)

    def _text(self) -> str:
        if self._next.kind is not Kind.STRING:
            raise self._unexpected("a text in quotes")
        return self._advance().text

    # Tokens.

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _advance(self) -> Token:
        token = self._next
        self._at += token.kind is not Kind.END
        return token

    def _take(self, text: str) -> bool:
        if self._next.is_one_of(text):
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(text)

    def _unexpected(self, expected: str) -> ExpressionError:
        token = self._next
        found = "the end" if token.kind is Kind.END else repr(token.text)
        return ExpressionError(f"{found} at position {token.at}, {expected} expected")

    def _condition(self, term: _Term) -> Truth:
        if term.condition is None:
            raise ExpressionError(f"a condition expected before position {self._next.at}, not a value")
        return term.condition


def _of(condition: Truth) -> _Term:
    return _Term(condition, condition=condition)


def _property(name: str) -> _Term:
    def operand(properties: Properties) -> Value:
        return properties.get(name)

    def condition(properties: Properties) -> bool | None:
        return predicates.truth_of(properties.get(name))

    return _Term(operand, is_property=True, condition=condition)


def _constant(value: Value, *, is_truth: bool = False) -> _Term:
    condition = (lambda _: predicates.truth_of(value)) if is_truth else None
    return _Term(lambda _: value, value, is_constant=True, condition=condition)


def _negative(term: _Term) -> _Term:
    """Return the term with a minus sign: unknown, unless it is a number."""

    def operand(properties: Properties) -> Value:
        value = term.operand(properties)
        return Number(-value.value, value.bits) if isinstance(value, Number) else None

    return _Term(operand)


def _number(token: Token) -> Number:
    if token.kind is Kind.WHOLE:
        value = int(token.text.rstrip("lL"))
        if value > _WHOLE_MAX:
            raise ExpressionError(f"{token.text} at position {token.at} is greater than {_WHOLE_MAX}")
        return Number(value, 32 if value <= _INT_MAX else 64)
    decimal = float(token.text)
    if math.isinf(decimal) or decimal == 0:
        raise ExpressionError(f"{token.text} at position {token.at} is outside the range of decimal numbers")
    return Number(decimal, 0)


def _check_equality(left: _Term, right: _Term) -> None:
    for term in (left, right):
        if term.is_constant and term.constant is None:
            raise ExpressionError("NULL is compared by IS NULL and IS NOT NULL only")
    if isinstance(left.constant, bool) and right.is_constant and not isinstance(right.constant, bool):
        raise ExpressionError("a truth value is compared with a text or a number")


def _check_ordered(term: _Term) -> None:
    if term.is_condition or (term.is_constant and not isinstance(term.constant, Number)):
        raise ExpressionError("only properties and numbers can be compared by < <= > >= BETWEEN")


def _check_range(low: _Term, high: _Term) -> None:
    first, last = low.constant, high.constant
    if isinstance(first, Number) and isinstance(last, Number) and predicates.order(first, last) == 1:
        raise ExpressionError(f"BETWEEN {first.value} AND {last.value}: the first is the greater one")
