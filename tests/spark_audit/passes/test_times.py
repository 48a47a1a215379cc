"""Times in another unit are refused, and single impossible times are set aside.

Method: small logs with the times of 2026 in each unit, on the embedded engine.
"""

from pathlib import Path
from typing import Any

import pytest

from mqproof.report.model import Verdict
from mqproof.spark_audit.audit import Audit, violations
from mqproof.spark_audit.checks import EVENT_CHECKS
from mqproof.spark_audit.passes.times import time_text
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import LogBuilder, embedded_audit

NOW_US = 1_795_574_400_000_000
Rows = list[dict[str, Any]]


def rows_of_2026(*, loses: bool = False) -> Rows:
    """Return the log of twenty messages, one of which the group may have lost."""
    builder = LogBuilder()
    for offset in range(20):
        builder.stored(f"m_{offset}", offset)
        if not (loses and offset == 7):
            builder.deliver(f"m_{offset}", offset)
    return [{**row, "ts": NOW_US + row["ts"]} for row in builder.rows]


def judged(rows: Rows, scratch: Path) -> Audit:
    return embedded_audit(rows, scratch, given_rows=len(rows), checks={"DELIV-1": EVENT_CHECKS["DELIV-1"]})


@pytest.mark.parametrize(
    ("in_a_second", "unit", "remedy"),
    [
        (1, "seconds", "multiply ts and born_ts by 1000000"),
        (1_000, "milliseconds", "multiply ts and born_ts by 1000"),
        (1_000_000_000, "nanoseconds", "divide ts and born_ts by 1000"),
    ],
)
def test_a_log_in_another_unit_is_refused_with_the_unit_and_the_remedy(
    tmp_path: Path, in_a_second: int, unit: str, remedy: str
) -> None:
    rows = [{**row, "ts": row["ts"] * in_a_second // 1_000_000} for row in rows_of_2026()]
    with pytest.raises(InputError, match=f"look like {unit} .* expected microseconds since 1970: {remedy}$"):
        judged(rows, tmp_path)


def test_one_node_in_another_unit_is_refused_by_name(tmp_path: Path) -> None:
    rows = rows_of_2026()
    for row in rows:
        if row["node"] == "consumer":
            row["ts"] //= 1_000
    with pytest.raises(InputError, match=r"^node 'consumer': its times look like milliseconds"):
        judged(rows, tmp_path)


@pytest.mark.parametrize("begin", [0, 1_262_304_000 - 20_000_000])
def test_simulated_times_are_judged_though_they_pass_through_the_range_of_seconds(
    tmp_path: Path, begin: int
) -> None:
    rows = [{**row, "ts": row["ts"] - NOW_US + begin} for row in rows_of_2026()]
    done = judged(rows, tmp_path)
    assert (done.set_aside_rows, done.overview.rows) == (0, len(rows))


def test_single_impossible_times_are_set_aside_and_counted(tmp_path: Path) -> None:
    rows = rows_of_2026()
    chosen = [row for row in rows if row["kind"] == "deliver"][3:5]
    for row, ts in zip(chosen, (-5, 4_600_000_000_000_000_000), strict=True):
        row["ts"] = ts
    done = judged(rows, tmp_path)
    assert done.set_aside_rows == 2
    assert done.set_aside == ("consumer#3 at -5", "consumer#4 at 4600000000000000000")
    assert done.unreadable_rows == 0
    assert done.overview.first_ts == NOW_US, "the rows are not judged"
    results = {result.id: result for result in done.results}
    # Without these rows, two messages look lost.
    assert results["DELIV-1"].verdict is Verdict.UNKNOWN
    assert "missing, unreadable or set aside" in results["DELIV-1"].detail


def test_violations_that_impossible_times_cannot_explain_are_still_found(tmp_path: Path) -> None:
    rows = rows_of_2026(loses=True)
    rows.append({"ts": -5, "seq": 0, "node": "harness", "kind": "rebalance", "attrs": {}})
    done = judged(rows, tmp_path)
    assert (done.set_aside_rows, [each["msg_id"] for each in violations(done)]) == (1, ["m_7"])


def test_a_node_whose_clock_is_years_away_is_refused_by_name(tmp_path: Path) -> None:
    rows = rows_of_2026()
    for row in rows:
        if row["node"] == "producer":
            row["ts"] -= NOW_US - 5_000_000
    with pytest.raises(
        InputError, match=r"^node 'producer': 40 of its times are around 1970-01-01 .* 10 years"
    ):
        judged(rows, tmp_path)


def test_a_time_beyond_the_calendar_has_a_text() -> None:
    assert time_text(NOW_US) == "2026-11-25 02:40:00 UTC"
    assert time_text(NOW_US * 1_000) == "the year 58869"
