"""The terminal report has a symbol and a word per verdict at any width, and never breaks replay commands."""

import io
from dataclasses import replace

import pytest

from mqproof.report import terminal
from tests.report.examples import EMPTY, NASTY_REPORT, REPLAY, REPORT


def test_a_row_contains_invariant_layer_verdict_and_counts() -> None:
    lines = terminal.render(REPORT).splitlines()
    row = next(line for line in lines if "conformance" in line)
    assert row.split() == [
        "FLUSH-1",
        "SyncAckedDurable",
        "conformance",
        "✗",
        "violated",
        "200",
        "scripts,",
        "35",
        "crashes",
        "12.5",
    ]


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_verdicts_and_replay_commands_are_not_broken_at_any_width(width: int) -> None:
    text = terminal.render(REPORT, width=width)
    for words in ("✓ held", "✗ violated", "? unknown", "– not tested"):
        assert words in text
    line = next(line for line in text.splitlines() if line.startswith("✗ violated FLUSH-1"))
    assert line.endswith(f"replay: {REPLAY}")


@pytest.mark.parametrize("width", [36, 80])
def test_the_matrix_is_readable_at_narrow_and_wide_widths(width: int) -> None:
    lines = terminal.render_matrix(REPORT, width=width).splitlines()
    row = next(line for line in lines if line.startswith("FLUSH-1"))
    symbols = [word for word in row.split() if word in "✓✗·"]
    assert symbols == ["✓", "✗", "·"]
    assert "✗ violated" in "\n".join(lines)


def test_colour_is_added_only_on_request() -> None:
    assert "\x1b[" not in terminal.render(REPORT)
    assert "\x1b[" in terminal.render(REPORT, colour=True)


def test_ascii_only_output_is_ascii() -> None:
    assert terminal.render(REPORT, ascii_only=True).isascii()
    assert terminal.render_matrix(NASTY_REPORT, ascii_only=True).isascii()


def test_control_characters_and_markup_of_witnesses_are_escaped() -> None:
    text = terminal.render(NASTY_REPORT, width=200)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert r"\x1b[31m<script>" in text  # rich would interpret [31m as markup


def test_the_number_of_witnesses_is_limited_and_the_rest_is_counted() -> None:
    violated = REPORT.results[1]
    many = replace(REPORT, results=(replace(violated, witnesses=violated.witnesses * 10),))
    assert f"… {20 - terminal.WITNESSES_MAX} more of 20" in terminal.render(many)


def test_a_report_without_results_is_unknown() -> None:
    assert terminal.render(EMPTY).endswith("? unknown: no results\n")


def test_show_writes_plain_text_to_a_pipe() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    terminal.show(REPORT, stream)
    assert b"violated FLUSH-1" in raw.getvalue()
    assert b"\x1b" not in raw.getvalue()
