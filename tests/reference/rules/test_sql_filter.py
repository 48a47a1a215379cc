"""Tests the reference of SQL92 filters with results observed with Apache RocketMQ 5.5.0."""

import pytest

from mqproof.reference.rules.sql_filter import NoResultError, NotAnExpressionError, evaluate, parse, selects
from tests.expressions import OBSERVED, PROPERTIES


@pytest.mark.parametrize(("expression", "expected"), OBSERVED)
def test_an_expression_has_the_result_that_apache_has(expression: str, expected: str) -> None:
    try:
        tree = parse(expression)
    except NotAnExpressionError:
        assert expected == "INVALID"
        return
    try:
        found = str(evaluate(tree, PROPERTIES))
    except NoResultError:
        found = "ERROR"
    assert found == expected
    assert selects(expression, PROPERTIES) is (expected == "True")
