"""Goal: text of the code is shown as it is, whatever signs of Markdown are in it."""

import pytest

from docs_site.markdown import code, escaped, table


def test_a_table_escapes_bars_and_joins_lines() -> None:
    assert table(["a", "b"], [["x|y", "two\nlines"]]) == "| a | b |\n| --- | --- |\n| x\\|y | two lines |\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SYNC_MASTER", "SYNC\\_MASTER"),
        ("`SYNC_MASTER` or <x>", "`SYNC_MASTER` or \\<x>"),
        ("a * b", "a \\* b"),
    ],
)
def test_signs_of_markdown_are_escaped_outside_code(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_code_with_a_backtick_has_two_as_its_fence() -> None:
    assert code("a`b") == "``a`b``"
