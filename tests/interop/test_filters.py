"""Tests that SQL92 filters select the same messages as those of Apache RocketMQ.

Released brokers ignore the text behind a valid expression, such as `b` in `a = 1 b`. Ours refuse it.
"""

import random
import re
from collections.abc import Iterator

import pytest

from mqproof.conformance.adapters.apache.filters import results
from mqproof.reference.rules import sql_filter
from tests.expressions import OBSERVED, PROPERTIES, drawn_expression, drawn_properties
from tests.impl.filtering.test_sql import result

pytestmark = pytest.mark.apache


@pytest.fixture
def newest(release: str) -> str:
    if release.startswith("4."):
        pytest.skip("CONTAINS, STARTSWITH and ENDSWITH are of 5.x")
    return release


def test_the_observed_results_are_those_of_the_release(newest: str) -> None:
    found = results(newest, [(expression, PROPERTIES) for expression, _ in OBSERVED])
    assert list(zip([expression for expression, _ in OBSERVED], found, strict=True)) == OBSERVED


def test_random_expressions_and_messages_have_the_same_result(newest: str) -> None:
    cases = list(_cases(2000))
    for (expression, message), expected in zip(cases, results(newest, cases), strict=True):
        assert (expression, result(expression, message)) == (expression, expected)
        if expected != "INVALID":
            assert sql_filter.selects(expression, message) is (expected == "True")


def _cases(count: int) -> Iterator[tuple[str, dict[str, str]]]:
    chance = random.Random(92)
    for _ in range(count):
        expression = drawn_expression(chance, chance.randrange(5))
        yield re.sub("-+", "-", expression), drawn_properties(chance)
