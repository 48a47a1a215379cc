"""Tests the output lines and the exit code of `mqproof audit watch`."""

from typing import Final

import pytest

from mqproof.report.model import Exit
from mqproof.spark_audit.command.watch_command import report_violation, so_far
from tests.spark_audit.test_cli import ESCAPED, HOSTILE


def test_a_line_of_watch_names_its_fields_and_escapes_their_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = dict.fromkeys(("broker", "topic", "queue_id", "queue_offset", "msg_id", "group", "first_ts"))
    report_violation(
        {**nothing, "invariant": "DELIV-1", "rule": "lost", "topic": HOSTILE, "evidence": "so it is"}
    )
    report_violation(
        {**nothing, "invariant": "DELIV-1", "rule": "lost", "first_ts": 0, "queue_id": 0, "group": "a  b=c",
         "evidence": None}
    )  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        f"-  DELIV-1  lost  topic='{ESCAPED}'  evidence=so it is",
        "1970-01-01 00:00:00.000000  DELIV-1  lost  queue_id=0  group='a  b=c'",
    ]


LOST: Final = ("DELIV-1", "lost-write", 2, 1, 0)

DUPLICATES: Final = ("DELIV-3", "duplicate-delivery", 5, 0, 5)


@pytest.mark.parametrize(
    ("rows", "missing", "code", "expected"),
    [
        ([], 0, Exit.HELD, ["no violation so far"]),
        ([], 1, Exit.INCONCLUSIVE, ["no violation so far; unknown: 1 rows are missing or unreadable"]),
        ([LOST], 1, Exit.VIOLATED, ["DELIV-1 lost-write: 2 violations"]),
        (
            [LOST, DUPLICATES],
            2,
            Exit.VIOLATED,
            [
                "DELIV-1 lost-write: 2 violations; unknown: 2 rows are missing or unreadable, "
                "and may explain them",
                "DELIV-3 duplicate-delivery: 5 violations, 5 of them younger than --late-s "
                "and not reported yet",
            ],
        ),
        ([LOST, DUPLICATES], 5, Exit.INCONCLUSIVE, None),
    ],
)
def test_the_exit_code_of_watch_depends_on_its_violations(
    rows: list[tuple[str, str, int, int, int]],
    missing: int,
    code: int,
    expected: list[str] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert so_far(rows, missing) == code
    lines = capsys.readouterr().out.splitlines()
    assert expected is None or lines == expected


def test_gaps_that_nodes_report_make_the_result_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    assert so_far([], 0, 2) == Exit.INCONCLUSIVE
    assert so_far([LOST], 0, 2) == Exit.VIOLATED
    assert capsys.readouterr().out.splitlines() == [
        "no violation so far; unknown: nodes dropped events (2 gaps)",
        "DELIV-1 lost-write: 2 violations",
    ]
