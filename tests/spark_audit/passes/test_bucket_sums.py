"""The pass over a log in files keeps ambiguous rows; buckets wrongly considered clean are read again.

Method: join many small logs with random faults into one log, in files with few rows per group, so that
buckets and sequences continue in other row groups. Judge it with a guess from the log's first rows, and with
wrong guesses. The evidence must equal that of an exact check of every message.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.log_pass import Passed, plan_buckets, sum_up
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes import extraction
from mqproof.spark_audit.passes.bucket_plan import ACK, APPEND, DELIVER, SEND, Guess, guess
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.splits import LogFile
from tests.spark_audit.conftest import STEP_US, embedded_evidence, frame, table
from tests.spark_audit.passes.test_fingerprint import PREFIX, clean_log, examined, faulty_log, of_log

Examined = dict[str, set[tuple[Any, ...]]]

LOGS = 20
GROUP_ROWS = 150
"""Each small log has 84 rows, of which some are in the next row group."""

FAILED = {
    "ts": 70 * STEP_US, "seq": 7000, "node": "consumer-g", "kind": "consume_fail", "msg_id": "m_5",
    "topic": "t", "queue_id": 0, "queue_offset": 5, "group": "g",
}  # fmt: skip
ROLES = frozenset((SEND, ACK, APPEND, DELIVER))


def rows() -> list[dict[str, Any]]:
    """Return the rows of all logs. The first one is clean, except for a repeated delivery in the last row."""
    clean = clean_log().rows
    repeated = next(row for row in clean if row["kind"] == "deliver") | {"ts": 90 * STEP_US, "seq": 8000}
    logs = [clean, *([*faulty_log(log), *([FAILED] if log % 5 == 0 else ())] for log in range(1, LOGS))]
    return [of_log(number, row) for number, log in enumerate(logs) for row in log] + [of_log(0, repeated)]


def of_files(spark: SparkSession, rows: list[dict[str, Any]], folder: Path) -> EventLog:
    """Write two files with several row groups."""
    half = len(rows) // 2
    files = []
    for number, part in enumerate((rows[:half], rows[half:])):
        pq.write_table(table(part), folder / f"{number}.parquet", row_group_size=GROUP_ROWS)
        files.append(LogFile(folder / f"{number}.parquet"))
    return EventLog(frame(spark, rows), tuple(files))


@pytest.fixture(scope="module")
def exact() -> Examined:
    """Return the evidence of an exact check of every message, from the embedded engine."""
    brokers = tuple(sorted({row["node"] for row in rows() if row["kind"] == "append"}))
    with embedded_evidence(rows(), brokers) as evidence:
        return examined(evidence)


def wrong_guess(log: EventLog) -> Guess:
    """Return a guess with wrong readers of all topics, and without acknowledgements."""
    readers = guess(log)[0].readers
    return Guess(dict.fromkeys([*readers, "t3"], ("g", "h", "i")), frozenset({SEND, APPEND, DELIVER}))


def empty_guess(_: EventLog) -> Guess:
    return Guess()


def expected(log: EventLog) -> Guess:
    found, _ = guess(log)
    assert found.readers
    assert found.roles >= ROLES
    return found


def passed_over(log: EventLog, guessed: Guess, folder: Path) -> Passed:
    plan = plan_buckets(log, Options(id_prefix=PREFIX), None, guessed, folder)
    return sum_up(log, plan, lambda frame: frame.cache())


@pytest.fixture(scope="module")
def in_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    return of_files(spark, rows(), tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="module")
def passed(in_files: EventLog, tmp_path_factory: pytest.TempPathFactory) -> Passed:
    """Return the result of a pass with the guess that the log itself gives."""
    return passed_over(in_files, expected(in_files), tmp_path_factory.mktemp("doubts"))


def gathered(log: EventLog, passed: Passed, folder: Path) -> Evidence:
    brokers = tuple(sorted({row["node"] for row in rows() if row["kind"] == "append"}))
    found = gather(log, brokers, Options(id_prefix=PREFIX), passed=passed, folder=folder)
    assert found.buckets
    assert 0 < len(found.buckets.read) < found.buckets.count
    return found


def test_kept_rows_and_rows_read_again_cover_all_ambiguous_buckets(
    in_files: EventLog,
    passed: Passed,
    exact: Examined,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reread: list[set[int]] = []
    only = EventLog.only

    def record_row_groups(log: EventLog, row_groups: set[int]) -> EventLog:
        reread.append(row_groups)
        return only(log, row_groups)

    monkeypatch.setattr(EventLog, "only", record_row_groups)
    seen = examined(gathered(in_files, passed, tmp_path))
    assert seen == exact
    assert all(seen.values())
    # Some ambiguous buckets continue in row groups that look clean, but most rows were kept.
    groups = sum(pq.read_metadata(file.path).num_row_groups for file in in_files.files)
    assert 0 < len(reread[0]) < groups / 2
    kept = passed.rows.where("part = 'kept'").collect()
    assert sum(pq.read_metadata(row["file"]).num_rows for row in kept) < len(rows())


DEEP = pytest.mark.deep("reads more again than after a wrong guess, which is tested in every run")


@pytest.mark.parametrize(
    "guessed",
    [wrong_guess, pytest.param(empty_guess, marks=DEEP)],
)
def test_a_wrong_guess_does_not_change_the_evidence(
    in_files: EventLog,
    exact: Examined,
    tmp_path: Path,
    guessed: Callable[[EventLog], Guess],
) -> None:
    passed = passed_over(in_files, guessed(in_files), tmp_path)
    # The other parts of the evidence do not depend on the guess.
    names = ("messages", "ambiguous_events")
    assert examined(gathered(in_files, passed, tmp_path), names) == {name: exact[name] for name in names}
    passed.rows.unpersist()
    passed.profile_and_runs.unpersist()


def test_without_reading_again_some_ambiguous_rows_are_missing(
    in_files: EventLog,
    passed: Passed,
    exact: Examined,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extraction, "_unkept", lambda _: set())
    found = examined(gathered(in_files, passed, tmp_path), ("messages",))
    assert found["messages"] != exact["messages"]
