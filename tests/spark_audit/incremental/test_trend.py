"""Tests the trend over runs: new, recurring and resolved violations, from the states of three runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import msgspec

from mqproof.spark_audit.incremental.carried_state import Manifest
from mqproof.spark_audit.incremental.state_folder import SCHEMA_VERSION
from mqproof.spark_audit.incremental.trend import record_run, trend_tables
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.schema import FINDING_COLUMNS

EMPTY: Final = Overview(0, {}, (), (), 0, 0, 0, 0, ())
SECOND_US: Final = 1_000_000


def leave(folder: Path, run: int, *found: tuple[int, str, str, str]) -> Path:
    """Write a state with findings: run, rule, group and message."""
    state = folder / f"night-{run:06}"
    (state / "findings").mkdir(parents=True)
    manifest = Manifest(SCHEMA_VERSION, run, 0, 0)
    (state / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    columns = {"string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT"}
    fields = ", ".join(f'"{name}" {columns[kind]}' for name, kind in FINDING_COLUMNS.items())
    with duckdb.connect() as database:
        database.execute(f'CREATE TABLE found ({fields}, night INTEGER, "final" BOOLEAN)')
        for night, rule, group, msg_id in found:
            row: dict[str, Any] = dict.fromkeys(FINDING_COLUMNS)
            row |= {"invariant": "DELIV-1", "rule": rule, "topic": "t", "group": group, "msg_id": msg_id}
            values = [*row.values(), night, False]
            database.execute(f"INSERT INTO found VALUES ({', '.join('?' * len(values))})", values)
        database.execute(f"COPY found TO '{state / 'findings' / 'part-0.parquet'}'")
    return state


def test_the_trend_shows_what_is_new_what_recurs_and_what_is_resolved(tmp_path: Path) -> None:
    first = leave(tmp_path, 1, (1, "lost", "old", "m1"), (1, "lost", "late", "m2"), (1, "lost", "both", "m3"))
    record_run(None, first, 1, replace(EMPTY, rows=10, last_ts=7 * SECOND_US), 0)
    second = leave(
        tmp_path, 2,
        (1, "lost", "old", "m1"), (1, "lost", "both", "m3"), (2, "lost", "both", "m4"),
        (2, "lost", "new", "m5"),
    )  # fmt: skip
    record_run(first, second, 2, replace(EMPTY, rows=20, last_ts=9 * SECOND_US), 1)
    trend, runs = trend_tables(first, second)
    shown = {row[3]: row[4:] for row in trend.rows}
    assert shown == {
        "both": ("recurs", "1", "1", "0", "2"),
        "new": ("new", "1", "0", "0", "1"),
        "late": ("resolved", "0", "0", "1", "0"),
        "old": ("no new ones", "0", "1", "0", "1"),
    }
    assert {row[:3] for row in trend.rows} == {("DELIV-1", "lost", "t")}
    assert runs.rows == (
        ("2", "1970-01-01 00:00:09 UTC", "20", "2", "1"), ("1", "1970-01-01 00:00:07 UTC", "10", "3", "0"),
    )  # fmt: skip


def test_without_violations_there_is_no_trend(tmp_path: Path) -> None:
    state = leave(tmp_path, 1)
    record_run(None, state, 1, EMPTY, 0)
    assert trend_tables(None, state) == ()


def test_a_state_of_an_older_version_has_no_records(tmp_path: Path) -> None:
    first = leave(tmp_path, 1, (1, "lost", "g", "m1"))
    second = leave(tmp_path, 2, (1, "lost", "g", "m1"))
    record_run(first, second, 2, EMPTY, 0)
    _, runs = trend_tables(first, second)
    assert len(runs.rows) == 1
