"""Tests how texts become numbers, and how values compare, as in Java.

The results were observed with the filter of Apache RocketMQ 5.5.0. See docs/reference/protocol/filters.md,
"Evaluation".
"""

import math

import pytest

from mqproof.impl.filtering.predicates import (
    EvaluationError,
    Number,
    decimal,
    equals,
    order,
    order_of,
    whole,
)

INT = Number(5, 32)


def test_whole_numbers_have_digits_a_sign_and_a_range() -> None:
    assert [whole(text, 32) for text in ("5", "+7", "-3", "05", "٥")] == [5, 7, -3, 5, 5]
    assert whole("99999999999", 64) == 99_999_999_999
    for text in ("", " 5", "5.0", "1_0", "0x5", "2147483648", "9" * 500):
        with pytest.raises(EvaluationError):
            whole(text, 32)


def test_decimal_numbers_are_those_of_java() -> None:
    texts = (" 5 ", "5d", "1e3", ".5", "5.", "Infinity", "-0.0", "0x1p3", "0x1p9999", "-0x1p9999")
    assert [decimal(text) for text in texts] == [5, 5, 1000, 0.5, 5, math.inf, -0.0, 8, math.inf, -math.inf]
    assert math.isnan(decimal("NaN"))
    for text in ("", "x", "1_0", "٥", "inf", "nan", "5 d", "9" * 500):
        with pytest.raises(EvaluationError):
            decimal(text)


def test_nan_is_the_greatest_number_and_minus_zero_is_less_than_zero() -> None:
    assert order_of(math.nan, math.inf) == 1
    assert order_of(math.nan, math.nan) == 0
    assert order_of(-0.0, 0.0) == -1
    assert order_of(1.0, 2.0) == -1


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, True),
        (None, "x", None),
        ("x", None, False),
        ("5", INT, True),
        (INT, "5", True),
        (INT, Number(5.0, 0), True),
        (Number(2**53 + 1, 64), Number(2.0**53, 0), True),
        ("TRUE", True, True),
        ("x", True, False),
        (INT, True, False),
        (True, True, True),
    ],
)
def test_values_are_equal_after_the_text_is_converted(
    left: bool | str | Number | None, right: bool | str | Number | None, expected: bool | None
) -> None:
    assert equals(left, right) is expected


def test_comparisons_without_a_result_are_errors() -> None:
    for left, right in ((True, "x"), ("x", INT), ("5.0", INT)):
        with pytest.raises(EvaluationError):
            equals(left, right)
    with pytest.raises(EvaluationError):
        order("x", "5")
    assert order("9", "10") == -1
    assert order(None, INT) is None
