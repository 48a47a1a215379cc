"""Of a log in files the pass keeps what is in doubt, and what it took for clean by mistake is read again.

Method: many small logs as one, with trouble put in row by row, in files of few rows, so that buckets and
sequences go on in other row groups; judged with what the log's beginning lets expect, and with expectations
that are wrong; against a look at every message.
"""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.log_pass import plan_buckets, sum_up
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes import extraction
from mqproof.spark_audit.passes.bucket_plan import ACK, APPEND, DELIVER, SEND, Guess, guess
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.splits import LogFile
from tests.spark_audit.conftest import STEP_US, frame, table
from tests.spark_audit.passes.test_fingerprint import PREFIX, clean_story, of_log, troubled

LOGS = 20
GROUP_ROWS = 150
"""Of each small log, of 84 rows, some are in the next row group."""

FAILED = {
    "ts": 70 * STEP_US, "seq": 7000, "node": "consumer-g", "kind": "consume_fail", "msg_id": "m_5",
    "topic": "t", "queue_id": 0, "queue_offset": 5, "group": "g",
}  # fmt: skip
ROLES = frozenset((SEND, ACK, APPEND, DELIVER))


def rows() -> list[dict[str, Any]]:
    """The first log is clean but for its last row, at the very end: one message is handed out again."""
    clean = clean_story().rows
    again = next(row for row in clean if row["kind"] == "deliver") | {"ts": 90 * STEP_US, "seq": 8000}
    logs = [clean, *([*troubled(log), *([FAILED] if log % 5 == 0 else ())] for log in range(1, LOGS))]
    return [of_log(number, row) for number, log in enumerate(logs) for row in log] + [of_log(0, again)]


def of_files(spark: SparkSession, told: list[dict[str, Any]], folder: Path) -> EventLog:
    """Two files of several row groups."""
    half = len(told) // 2
    files = []
    for number, part in enumerate((told[:half], told[half:])):
        pq.write_table(table(part), folder / f"{number}.parquet", row_group_size=GROUP_ROWS)
        files.append(LogFile(folder / f"{number}.parquet"))
    return EventLog(frame(spark, told), tuple(files))


def looked_at(of: Evidence) -> dict[str, list[str]]:
    """Everything of the evidence that is made of the rows in doubt."""
    names = ("messages", "doubted", "steps", "troubled")
    return {name: sorted(map(str, getattr(of, name).collect())) for name in names}


@pytest.fixture(scope="module")
def exact(spark: SparkSession) -> dict[str, list[str]]:
    """The evidence of a look at every message."""
    brokers = tuple(sorted({row["node"] for row in rows() if row["kind"] == "append"}))
    return looked_at(gather(EventLog.of(frame(spark, rows())), brokers, Options(exact=True)))


def misled(log: EventLog) -> Guess:
    """All topics are taken for one that has other readers; nobody is thought to acknowledge."""
    readers = guess(log)[0].readers
    return Guess(dict.fromkeys([*readers, "t3"], ("g", "h", "i")), frozenset({SEND, APPEND, DELIVER}))


def unheard_of(_: EventLog) -> Guess:
    return Guess()


def expected(log: EventLog) -> Guess:
    told, _ = guess(log)
    assert told.readers
    assert told.roles >= ROLES
    return told


@pytest.mark.parametrize("guessed", [expected, unheard_of, misled])
def test_what_is_kept_and_read_again_is_all_that_is_in_doubt(
    spark: SparkSession,
    exact: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guessed: Any,
) -> None:
    told = rows()
    log = of_files(spark, told, tmp_path)
    brokers = tuple(sorted({row["node"] for row in told if row["kind"] == "append"}))
    again: list[set[int]] = []
    only = EventLog.only

    def noted(log: EventLog, row_groups: set[int]) -> EventLog:
        again.append(row_groups)
        return only(log, row_groups)

    monkeypatch.setattr(EventLog, "only", noted)
    doubts = tmp_path / "doubts"
    doubts.mkdir()
    options = Options(id_prefix=PREFIX)
    passed = sum_up(log, plan_buckets(log, options, None, guessed(log), doubts), lambda frame: frame.cache())
    kept = passed.rows.where("part = 'kept'").collect()
    found = gather(log, brokers, options, passed=passed, folder=doubts)
    assert found.buckets
    assert 0 < len(found.buckets.read) < found.buckets.count
    seen = looked_at(found)
    assert seen == exact
    assert all(seen.values())
    groups = sum(pq.read_metadata(file.path).num_row_groups for file in log.files)
    if guessed is expected:
        # Some of what is in doubt goes on where all else looks clean; but most was kept.
        assert 0 < len(again[0]) < groups / 2
        assert sum(pq.read_metadata(row["file"]).num_rows for row in kept) < len(told)
    passed.rows.unpersist()
    passed.told.unpersist()


def test_without_what_is_read_again_some_of_it_is_missing(
    spark: SparkSession, exact: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = of_files(spark, rows(), tmp_path)
    brokers = tuple(sorted({row["node"] for row in rows() if row["kind"] == "append"}))
    monkeypatch.setattr(extraction, "_unkept", lambda _: set())
    options = Options(id_prefix=PREFIX)
    passed = sum_up(
        log, plan_buckets(log, options, None, expected(log), tmp_path), lambda frame: frame.cache()
    )
    found = looked_at(gather(log, brokers, options, passed=passed, folder=tmp_path))
    assert found != exact
