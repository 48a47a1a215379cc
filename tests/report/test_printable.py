"""Unsafe characters become visible escapes; all other characters are unchanged."""

import pytest

from mqproof.report.printable import one_line, printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, ümläut, 消息, 😀", "plain, ümläut, 消息, 😀"),
        ("\x00\x1b\x7f\x9b", r"\x00\x1b\x7f\x9b"),
        ("\r\n", "\\x0d\n"),
        ("\u202eevil\u2066\u061c", r"\u202eevil\u2066\u061c"),
        ("\udc80\uffff", r"\udc80\uffff"),
    ],
)
def test_unsafe_characters_become_escapes_and_others_are_unchanged(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_one_line_also_escapes_newlines_and_tabs() -> None:
    assert one_line("a\nb\tc") == r"a\nb\tc"
