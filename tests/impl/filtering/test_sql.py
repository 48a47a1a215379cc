"""Tests the compiled expressions: results observed with Apache RocketMQ 5.5.0, limits, and the reference.

See docs/reference/protocol/filters.md.
"""

import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings

from mqproof.impl.filtering.predicates import EvaluationError
from mqproof.impl.filtering.sql import DEPTH_MAX, Filter, compiled
from mqproof.impl.filtering.tokens import ExpressionError
from mqproof.reference.rules import sql_filter
from tests.expressions import OBSERVED, PROPERTIES, expressions, properties


def result(expression: str, message: dict[str, str]) -> str:
    """Return what our filter makes of the message."""
    try:
        found = compiled(expression)
    except ExpressionError:
        return "INVALID"
    try:
        return str(found.result(message))
    except EvaluationError:
        return "ERROR"


@pytest.mark.parametrize(("expression", "expected"), OBSERVED)
def test_an_expression_has_the_result_that_apache_has(expression: str, expected: str) -> None:
    assert result(expression, PROPERTIES) == expected
    assert compiled("TRUE").matches({})
    if expected != "INVALID":
        assert compiled(expression).matches(PROPERTIES) is (expected == "True")


@settings(max_examples=700, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), properties())
def test_the_reference_and_the_filter_agree(expression: str, message: dict[str, str]) -> None:
    try:
        tree = sql_filter.parse(expression)
    except sql_filter.NotAnExpressionError:
        expected = "INVALID"
    else:
        try:
            expected = str(sql_filter.evaluate(tree, message))
        except sql_filter.NoResultError:
            expected = "ERROR"
    assert result(expression, message) == expected
    if expected != "INVALID":
        assert compiled(expression).matches(message) is sql_filter.selects(expression, message)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "the end at position 1, a property, a value or \\( expected"),
        ("a", None),
        ("5", "a condition expected"),
        ("a = 1 b", "'b' at position 7, AND, OR or the end expected"),
        ("(a = 1", "the end at position 7, \\) expected"),
        ("a = NULL", "NULL is compared by IS NULL"),
        ("a > 'x'", "only properties and numbers"),
        ("a BETWEEN 9 AND 1", "BETWEEN 9 AND 1: the first is the greater one"),
        ("'x' IN ('x')", "the left side of IN is not a property"),
        ("a CONTAINS b", "'b' at position 12, a text in quotes expected"),
        ("a NOT 5", "BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH expected"),
        ("TRUE = 'x'", "a truth value is compared with a text"),
        ("a = 1.0e999", "outside the range of decimal numbers"),
        ("a = 9223372036854775808", "is greater than 9223372036854775807"),
    ],
)
def test_the_error_says_what_is_wrong_and_where(expression: str, problem: str | None) -> None:
    if problem is None:
        compiled(expression)
        return
    with pytest.raises(ExpressionError, match=problem):
        compiled(expression)


def test_the_depth_is_bounded_and_an_evaluation_needs_little_memory() -> None:
    deep = "(" * DEPTH_MAX + "a = 1" + ")" * DEPTH_MAX
    assert compiled(deep).matches({"a": "1"})
    with pytest.raises(ExpressionError, match="nested more than 64 levels deep"):
        compiled(f"({deep})")
    with pytest.raises(ExpressionError, match="nested more than 64 levels deep"):
        compiled("NOT " * 65 + "(a = 1)")
    long = compiled(" OR ".join(f"a = '{number}'" for number in range(100)))
    message = {"a": "x" * 1000}
    long.matches(message)
    tracemalloc.start()
    for _ in range(100):
        long.matches(message)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 10


def _values(found: Filter, message: dict[str, str]) -> tuple[bytes | None, ...]:
    return tuple(message[name].encode() if name in message else None for name in found.names)


def test_an_expression_knows_the_properties_that_it_names() -> None:
    assert compiled("a > 5 AND (b = 'c' OR a IS NULL) OR NOT TRUE = d").names == ("a", "b", "d")
    assert compiled("TRUE").names == ()


@pytest.mark.parametrize(
    "expression", [expression for expression, expected in OBSERVED if expected != "INVALID"]
)
def test_the_values_of_the_named_properties_decide_as_the_properties_do(expression: str) -> None:
    found = compiled(expression)
    for message in (PROPERTIES, {}, PROPERTIES):
        assert found.matches_values(_values(found, message)) is found.matches(message)


def test_few_decisions_over_short_values_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Filter("a = 'é'", compiled("a = 'é'").result, ("a",))
    decided: list[dict[str, str]] = []
    matches = found.matches

    def counted(properties: dict[str, str]) -> bool:
        decided.append(properties)
        return matches(properties)

    monkeypatch.setattr(found, "matches", counted)
    for text, is_match in (("é", True), ("e", False), ("é", True), ("e", False)):
        assert found.matches_values((text.encode(),)) is is_match
    assert decided == [{"a": "é"}, {"a": "e"}]
    long = (b"e" * 129,)
    assert (found.matches_values(long), found.matches_values(long)) == (False, False)
    assert len(decided) == 4
    for number in range(1000):
        assert not found.matches_values((b"%d" % number,))
    assert len(found._decided) <= 100
    assert sum(len(value or b"") for values in found._decided for value in values) <= 100 * 128
