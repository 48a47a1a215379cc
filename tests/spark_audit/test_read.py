"""Reading: every shape of input ends in the same columns, and bad input in one clear line."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_audit.read import InputError, find_files, read
from spark_audit.schema import EVENTS
from tests.spark_audit.conftest import write_ndjson

ROW: dict[str, Any] = {"ts": 1, "seq": 0, "node": "n", "kind": "send", "msg_id": "m_1"}


def test_ndjson_gzip_and_parquet_are_read_as_one_table(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "a.ndjson").write_bytes(write_ndjson([{**ROW, "attrs": {"size": "7"}, "not_ours": 1}]))
    (log / "b.ndjson.gz").write_bytes(gzip.compress(write_ndjson([{**ROW, "seq": 1}])))
    pq.write_table(
        pa.table({**{name: [value] for name, value in ROW.items()}, "extra": [1.5]}), log / "c.parquet"
    )
    (log / "_truth.parquet").write_bytes(b"not looked at")
    merged = read(spark, [str(log)], tmp_path)
    assert merged.events.schema == EVENTS
    rows = merged.events.orderBy("seq").collect()
    assert [row.msg_id for row in rows] == ["m_1", "m_1", "m_1"]
    assert sorted(str(row.attrs) for row in rows) == ["None", "None", "{'size': '7'}"]
    assert merged.corrupt.count() == 0


def test_unsigned_and_narrow_numbers_become_ours(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "ts": pa.array([5], pa.uint64()),
        "seq": pa.array([0], pa.int16()),
        "node": ["n"],
        "kind": ["send"],
    }
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    log = read(spark, [str(tmp_path / "log.parquet")], tmp_path / "scratch")
    assert [(row.ts, row.seq) for row in log.events.collect()] == [(5, 0)]


def test_corrupt_rows_are_counted_and_kept_aside(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        write_ndjson([ROW]),
        b'{"ts": 2, "seq"\n',
        write_ndjson([{**ROW, "ts": "soon"}, {**ROW, "kind": "no_such_kind"}, {**ROW, "node": None}]),
        write_ndjson([{**ROW, "attrs": {"schema": "999"}}]),
    ]
    (tmp_path / "log.ndjson").write_bytes(b"".join(lines))
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert log.events.count() == 1
    kept = log.corrupt.collect()
    assert len(kept) == 5
    assert all(row.file.endswith("log.ndjson") for row in kept)
    assert '{"ts": 2, "seq"' in {row.line for row in kept}


def test_a_torn_last_line_is_the_last_write_of_a_killed_node(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_bytes(write_ndjson([ROW]) + b'{"ts": 2, "se')
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert (log.events.count(), log.corrupt.count(), log.torn_files) == (1, 0, 1)


def test_a_missing_column_is_refused_with_what_was_asked_and_what_was_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"ts": [1], "seq": [0], "kind": ["send"]}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: missing column node: .* this one has ts, seq, kind"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")
    (tmp_path / "log.parquet").unlink()
    (tmp_path / "log.ndjson").write_bytes(b'{"ts":1,"seq":0,"node":"n"}\n')
    with pytest.raises(InputError, match=r"log\.ndjson:1: missing column kind"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_a_truncated_parquet_file_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: [value] for name, value in ROW.items()}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"log\.parquet: not a whole Parquet file"):
        read(spark, [str(path)], tmp_path / "scratch")


def test_a_column_of_a_wrong_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({**{n: [v] for n, v in ROW.items()}, "ts": ["noon"]}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="column ts is string, expected bigint"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no event log in this folder"):
        find_files([str(tmp_path)])
    with pytest.raises(InputError, match="no such file or folder"):
        find_files([str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="no such file or folder"):
        find_files([str(tmp_path / "*.ndjson")])
    (tmp_path / "log.csv").write_text("ts")
    with pytest.raises(InputError, match="not an event log by its name"):
        find_files([str(tmp_path / "log.csv")])


def test_patterns_find_files_once(tmp_path: Path) -> None:
    for name in ("a.ndjson", "b.ndjson"):
        (tmp_path / name).write_bytes(write_ndjson([ROW]))
    assert find_files([str(tmp_path / "*.ndjson"), str(tmp_path)]) == (
        tmp_path / "a.ndjson",
        tmp_path / "b.ndjson",
    )
