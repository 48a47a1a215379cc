"""Goal: text from the source code is shown unchanged, even if it contains Markdown characters."""

import pytest

from docs_site.markdown import code, escaped, table


def test_a_table_escapes_bars_and_joins_the_lines_of_a_cell() -> None:
    assert table(["a", "b"], [["x|y", "two\nlines"]]) == "| a | b |\n| --- | --- |\n| x\\|y | two lines |\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SYNC_MASTER", "SYNC\\_MASTER"),
        ("`SYNC_MASTER` or <x>", "`SYNC_MASTER` or \\<x>"),
        ("a * b", "a \\* b"),
    ],
)
def test_markdown_characters_are_escaped_outside_code(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_code_with_a_backtick_is_enclosed_in_double_backticks() -> None:
    assert code("a`b") == "``a`b``"
