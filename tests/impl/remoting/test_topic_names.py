"""Tests which texts can be the name of a topic."""

import pytest

from mqproof.impl.remoting.topic_names import NAME_CHARACTERS_MAX, name_problem


@pytest.mark.parametrize("name", ["T", "%RETRY%G", "a|b_c-9", "x" * NAME_CHARACTERS_MAX])
def test_a_name_of_the_allowed_characters_has_no_problem(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("x" * (NAME_CHARACTERS_MAX + 1), "128 characters, at most 127"),
        ("two words", "'two words' has a character other"),
        ("T\n", "has a character other"),
        ("Ä", "has a character other"),
    ],
)
def test_the_problem_of_any_other_name_is_stated(name: str, problem: str) -> None:
    assert problem in (name_problem(name) or "")
