"""Tests the values of queries and forms: conversion, and errors that name the field."""

from collections.abc import Callable
from datetime import datetime

import pytest

from mqproof.impl.console.form_values import FIELDS_MAX, FormError, FormValues, parse_values
from mqproof.impl.runtime.network import Address


def test_values_are_converted() -> None:
    values = parse_values(
        "a=+x+&n=7&yes=yes&at=127.0.0.1:9876&t=2026-05-01T08:00&body=a%0D%0Ab&topic=%25RETRY%25G"
    )
    assert values.text("a") == "x"
    assert values.text("absent", "default") == "default"
    assert values.number("n", 0, 0, 10) == 7
    assert values.number("absent", 3, 0, 10) == 3
    assert values.flag("yes")
    assert not values.flag("absent")
    assert values.address("at") == Address("127.0.0.1", 9876)
    assert values.time_ms("t") == datetime(2026, 5, 1, 8).timestamp() * 1000
    assert values.time_ms("absent") is None
    assert values.lines("body") == "a\nb"
    assert values.name("topic") == "%RETRY%G"
    assert values.choice("a", {"x": 1}, "y") == 1


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("a=1&a=2", lambda v: v.text("a"), "field 'a' occurs twice"),
        ("a=%ff", lambda v: v.text("a"), "not a form of at most 64 fields in UTF-8"),
        ("&".join(f"a{n}=1" for n in range(FIELDS_MAX + 1)), lambda v: v.text("a1"), "not a form of at most"),
        ("a=" + "x" * 1025, lambda v: v.text("a"), "a has 1025 characters, at most 1024 expected"),
        ("a=x%00y", lambda v: v.text("a"), "one line of printable text expected"),
        ("a=x%E2%80%AEy", lambda v: v.text("a"), "one line of printable text expected"),
        ("a=+", lambda v: v.required("a"), "a is empty, a value expected"),
        ("a=x.y", lambda v: v.name("a"), "a: the name 'x.y' has a character other than"),
        ("a=x", lambda v: v.number("a", 0, 0, 9), "a is 'x', a number from 0 to 9 expected"),
        ("a=10", lambda v: v.number("a", 0, 0, 9), "a is '10', a number from 0 to 9 expected"),
        ("a=%D9%A3", lambda v: v.number("a", 0, 0, 9), "a number from 0 to 9 expected"),
        ("a=x", lambda v: v.choice("a", {"y": 1}, "y"), "a is 'x', one of y expected"),
        ("a=maybe", lambda v: v.flag("a"), "a is 'maybe', one of yes, no expected"),
        ("a=x", lambda v: v.address("a"), "a: 'x' is not an address"),
        ("a=soon", lambda v: v.time_ms("a"), "a is 'soon', a time such as 2026-05-01T08:00 expected"),
        ("a=0001-01-01T00:00", lambda v: v.time_ms("a"), "a time such as"),
    ],
)
def test_a_wrong_value_is_named(text: str, read: Callable[[FormValues], object], message: str) -> None:
    with pytest.raises(FormError, match=message.replace("(", r"\(")):
        read(parse_values(text))
