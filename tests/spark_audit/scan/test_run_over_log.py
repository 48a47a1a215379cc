"""A task reads the same rows from a file as Spark does.

Method: run the pass over a log with faults of every kind, once on rows passed by Spark, and once on a file
with several row groups. The results must be equal for any splits.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.report.model import Exit
from mqproof.spark_audit.audit import audit
from mqproof.spark_audit.command.failures import describe_failure
from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.profile import overview
from mqproof.spark_audit.passes.profile_partition import of_partition, profile
from mqproof.spark_audit.scan.partition import of_files
from mqproof.spark_audit.sources import splits
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.read import read
from mqproof.spark_audit.sources.splits import LogFile, SplitError, splits_of
from mqproof.spark_audit.spark_schema import PASS
from mqproof.spec.events import SCHEMA_VERSION
from tests.spark_audit.conftest import LogBuilder, frame, table, write_ndjson

GROUP_ROWS = 7
"""So small that a split contains neither a whole bucket nor a whole sequence."""


def varied_log() -> LogBuilder:
    builder = (
        LogBuilder().stored("m_lost", 0).stored("m_1", 1).send("m_2").send("m_2", attempt=2).append("m_2", 2)
    )
    for offset in (1, 2, 2, 1):
        builder.deliver(f"m_{offset}", offset).commit(offset)
    return builder.commit(0, reset="true").crash(kept_end=100).stored("m_3", 1).deliver("m_3", 1)


def written(rows: list[dict[str, Any]], path: Path) -> LogFile:
    pq.write_table(table(rows), path, row_group_size=GROUP_ROWS)
    return LogFile(path)


def test_files_and_rows_give_the_same_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "_SPLIT_BYTES", 1)
    rows = frame(spark, varied_log().rows)
    # The name of the log's file, as a pattern, matches this file.
    written(varied_log().rows[:3], tmp_path / "a1.parquet")
    in_file = EventLog(rows, (written(varied_log().rows, tmp_path / "a[1].parquet"),))
    assert len(splits_of(in_file.files)) == -(-len(varied_log().rows) // GROUP_ROWS)
    assert in_file.count() == len(varied_log().rows)
    options = Options(id_prefix=3)
    by_spark, by_task = (gather(log, ("broker",), options) for log in (EventLog.of(rows), in_file))
    assert by_spark.buckets
    assert by_task.buckets
    assert by_spark.buckets == by_task.buckets
    assert len(by_spark.buckets.read) > 1
    judged = [sorted(map(str, evidence.sums.collect())) for evidence in (by_spark, by_task)]
    assert judged[0] == judged[1]
    assert len(judged[0]) > 2
    of_rows, of_file = (sorted(map(str, profile(log).collect())) for log in (EventLog.of(rows), in_file))
    assert of_rows == of_file


def test_a_file_may_lack_columns_and_have_additional_ones(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"seq": pa.array([0], pa.int32()), "ts": [1], "node": ["a"], "kind": ["flush"], "x": [1]})
    pq.write_table(rows, tmp_path / "a.parquet")
    log = read(spark, [str(tmp_path / "a.parquet")], tmp_path).event_log
    assert log.files
    (row,) = profile(log).collect()
    assert (row.kind, row.node, row.topic, row.seq_max, row.first_ts, row.rare) == (
        "flush",
        "a",
        None,
        0,
        1,
        None,
    )


def test_columns_from_folder_names_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "node=01").mkdir()
    rows = pa.table({"seq": [0], "ts": [1], "kind": ["flush"]})
    pq.write_table(rows, tmp_path / "node=01" / "a.parquet")
    log = read(spark, [str(tmp_path)], tmp_path / "scratch").event_log
    assert not log.files
    assert overview(profile(log)).nodes == ("01",)


def test_rows_that_are_not_events_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = LogBuilder(subscribed=()).stored("m_0", 0).deliver("m_0", 0).rows
    (tmp_path / "a.ndjson").write_bytes(write_ndjson(rows) + b"{torn\n")
    invalid = [rows[1] | {"seq": 50, "kind": "unheard of"}, rows[2] | {"node": None}, rows[3] | {"seq": None}]
    invalid += [rows[1] | {"ts": 2**63 - 1}, rows[1] | {"queue_offset": -(2**63)}]
    written([*rows[:1], *invalid], tmp_path / "b.parquet")
    log = read(spark, [str(tmp_path)], tmp_path / "scratch").event_log
    assert len(log.files) >= 2
    assert overview(profile(log)).rows == len(rows) + 1


def test_rows_of_a_later_schema_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    rows = LogBuilder(subscribed=()).stored("m_0", 0).deliver("m_0", 0).rows
    later = rows[1] | {"seq": 1, "attrs": {"schema": str(SCHEMA_VERSION + 1)}}
    written([*rows[:1], later, *rows[2:]], tmp_path / "a.parquet")
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert overview(profile(log.event_log)).newer_rows == 1
    done = audit(log.event_log, tmp_path, pictures=False, checks={}, given_rows=log.rows)
    assert (done.overview.rows, done.unreadable_rows) == (len(rows) - 1, 1)


def test_the_message_names_a_file_with_damaged_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table([row | {"node": f"node-{n}"} for n, row in enumerate(varied_log().rows * 50)]), path)
    damaged = bytearray(path.read_bytes())
    damaged[100:1100] = b"\xff" * 1000
    path.write_bytes(damaged)
    run = of_files([of_partition], to_arrow_schema(PASS), [splits_of([LogFile(path)])])
    with pytest.raises(SplitError, match="damaged") as raised:
        list(run(iter([pa.RecordBatch.from_pydict({"id": [0]})])))
    thrown = RuntimeError(f"An error occurred.\n  spark_audit.split.SplitError: {raised.value}\n")
    line, code = describe_failure(thrown, tmp_path)
    assert line.startswith(f"{path}: damaged, cannot be read to the end: ")
    assert (code, "\n" in line) == (Exit.USAGE, False)
