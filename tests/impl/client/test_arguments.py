"""Tests that a wrong value is refused with its name."""

from collections.abc import Callable
from functools import partial

import pytest

from mqproof.impl.client.arguments import (
    require_function,
    require_group,
    require_kind,
    require_methods,
    require_time_ms,
    require_topic,
    require_whole,
)


def test_right_values_are_accepted() -> None:
    require_function("f", print)
    require_whole("n", 1, 1)
    require_time_ms("t", 0)
    require_kind("b", True, bool)
    require_methods("m", {}, ("get", "pop"))
    require_whole("n", 0)
    require_whole("n", 2, 1)
    require_group("a-group_1")
    require_group("g" * 120)
    require_topic("%RETRY%a-group_1")


@pytest.mark.parametrize(
    ("check", "kind", "text"),
    [
        (partial(require_function, "listener", None), TypeError, "listener is None, a function expected"),
        (partial(require_whole, "n", "3"), TypeError, "n is '3', a whole number expected"),
        (partial(require_whole, "n", True), TypeError, "n is True, a whole number expected"),
        (partial(require_whole, "n", 0, 1), ValueError, "n is 0, at least 1 expected"),
        (partial(require_time_ms, "t", "2026-01-01"), TypeError, "t is '2026-01-01', milliseconds since"),
        (partial(require_time_ms, "t", 1.5), TypeError, "t is 1.5, milliseconds since"),
        (partial(require_whole, "n", -1), ValueError, "n is -1, at least 0 expected"),
        (partial(require_time_ms, "t", True), TypeError, "t is True, milliseconds since"),
        (partial(require_group, "g" * 121), ValueError, "1 to 120 letters"),
        (partial(require_group, ""), ValueError, "1 to 120 letters"),
        (partial(require_methods, "m", {}, ("get", "no")), TypeError, "an object with the method no"),
        (partial(require_time_ms, "t", -1), ValueError, "t is -1, milliseconds since"),
        (partial(require_kind, "b", "yes", bool), TypeError, "b is 'yes', a value of the type bool expected"),
        (partial(require_methods, "m", 5, ("get",)), TypeError, "m is 5, an object with the method get"),
        (partial(require_group, "a b"), ValueError, "group 'a b': 1 to 120 letters"),
        (partial(require_group, None), TypeError, "the group is None, a text expected"),
        (partial(require_topic, "a b"), ValueError, "the topic 'a b' has a character other than"),
        (partial(require_topic, None), TypeError, "the topic is None, a text expected"),
    ],
)
def test_a_wrong_value_is_refused(check: Callable[[], None], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        check()
