"""No text in a report breaks a Markdown table or a code fence."""

from dataclasses import replace

from mqproof.report import markdown
from tests.report.examples import EMPTY, NASTY_REPORT, REPLAY, REPORT


def test_the_text_has_the_matrix_the_results_and_the_replay_command() -> None:
    text = markdown.render(REPORT)
    assert "| FLUSH-1 SyncAckedDurable | ✓ held | ✗ violated |  |" in text
    assert "| FLUSH-1 SyncAckedDurable | conformance | ✗ violated | 200 scripts, 35 crashes | 12.5 |" in text
    assert f"```\n{REPLAY}\n```" in text
    assert r"| check \| model | 3.2 |" in text
    assert "too is gone\n  - 12:00:00.5 broker-a: crash\n" in text


def test_markup_in_a_cell_does_not_break_the_table() -> None:
    text = markdown.render(NASTY_REPORT)
    assert "<script>" not in text.split("Replay:")[0]
    assert "\x00" not in text
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows
    assert all(line.endswith(" |") for line in rows)


def test_a_report_without_results_is_unknown() -> None:
    assert "**? unknown**" in markdown.render(EMPTY)


def test_a_replay_command_with_backticks_stays_in_its_fence() -> None:
    violated = replace(REPORT.results[1], replay="echo ```; rm")
    text = markdown.render(replace(REPORT, results=(violated,)))
    assert "````\necho ```; rm\n````" in text
