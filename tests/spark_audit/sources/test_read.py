"""Reads event logs: every input format gives the same columns, and bad input gives one clear line."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.read import read
from mqproof.spark_audit.spark_schema import EVENTS
from tests.spark_audit.conftest import write_ndjson

ROW: dict[str, Any] = {"ts": 1, "seq": 0, "node": "n", "kind": "send", "msg_id": "m_1"}


def test_ndjson_gzip_zstd_and_parquet_are_read_as_one_table(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    (log / "a.ndjson").write_bytes(write_ndjson([{**ROW, "attrs": {"size": "7"}, "not_ours": 1}]))
    (log / "b.ndjson.gz").write_bytes(gzip.compress(write_ndjson([{**ROW, "seq": 1}])))
    pq.write_table(
        pa.table({**{name: [value] for name, value in ROW.items()}, "extra": [1.5]}), log / "c.parquet"
    )
    with pa.output_stream(log / "d.ndjson.zst", compression="zstd") as packed:
        packed.write(write_ndjson([{**ROW, "seq": 3}]))
    (log / "empty.ndjson").touch()
    (log / "_truth.parquet").write_bytes(b"not looked at")
    merged = read(spark, [str(log)], tmp_path)
    assert merged.events.schema == EVENTS
    rows = merged.events.orderBy("seq").collect()
    assert [row.msg_id for row in rows] == ["m_1"] * 4
    assert sorted(str(row.attrs) for row in rows) == ["None", "None", "None", "{'size': '7'}"]
    assert (merged.corrupt.count(), merged.rows) == (0, 4)


def test_unsigned_and_narrow_numbers_get_the_types_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "ts": pa.array([5], pa.uint64()),
        "seq": pa.array([0], pa.int16()),
        "node": ["n"],
        "kind": ["send"],
    }
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    log = read(spark, [str(tmp_path / "log.parquet")], tmp_path / "scratch")
    assert [(row.ts, row.seq) for row in log.events.collect()] == [(5, 0)]


def test_corrupt_rows_are_counted_and_kept_separately(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        write_ndjson([ROW]),
        b'{"ts": 2, "seq"\n[]\n\n',
        b"[" + write_ndjson([ROW]).strip() + b"]\n",
        write_ndjson([{**ROW, "ts": "soon"}, {**ROW, "kind": "no_such_kind"}, {**ROW, "node": None}]),
        write_ndjson([{**ROW, "attrs": {"schema": "999"}}, {**ROW, "ts": 1 << 62}, {**ROW, "seq": 1 << 63}]),
    ]
    (tmp_path / "log.ndjson").write_bytes(b"".join(lines))
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert log.events.count() == 1
    kept = log.corrupt.collect()
    assert len(kept) == 9 == log.rows - 1
    assert all(row.file.endswith("log.ndjson") for row in kept)
    # Rows are kept unchanged, because the reason may be a misspelt name.
    assert {row.line for row in kept} == {
        line for part in lines[1:] for line in part.decode().splitlines() if line.strip()
    }


def test_an_invalid_parquet_row_is_kept_with_all_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{**ROW, "colour": "red"}, {**ROW, "kind": "delivr", "colour": "blue"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    (kept,) = read(spark, [str(tmp_path / "log.parquet")], tmp_path / "scratch").corrupt.collect()
    assert msgspec.json.decode(kept.line) == rows[1]


def test_a_torn_last_line_is_the_last_write_of_a_killed_node(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_bytes(write_ndjson([ROW]) + b'{"ts": 2, "se')
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert (log.events.count(), log.corrupt.count(), log.rows, log.torn_files) == (1, 0, 1, 1)


def test_the_message_for_a_missing_column_lists_the_existing_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"ts": [1], "seq": [0], "kind": ["send"]}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: missing column node: .* this one has ts, seq, kind"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")
    (tmp_path / "log.parquet").unlink()
    (tmp_path / "log.ndjson").write_bytes(b'{"ts":1,"seq":0,"node":"n"}\n')
    with pytest.raises(InputError, match=r"log\.ndjson:1: missing column kind"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_a_missing_column_is_found_in_a_compressed_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.ndjson.gz").write_bytes(gzip.compress(b'{"ts":1,"seq":0,"node":"n"}\n'))
    with pytest.raises(InputError, match=r"log\.ndjson\.gz:1: missing column kind"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_a_folder_named_after_a_column_gives_its_value(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log [of] *all* {nodes}"
    row = {name: value for name, value in ROW.items() if name != "node"}
    for node in ("01", "02"):
        (log / f"node={node}" / "queue_id=3").mkdir(parents=True)
    (log / "node=01" / "queue_id=3" / "a.ndjson").write_bytes(write_ndjson([row]))
    pq.write_table(
        pa.table({name: [value] for name, value in row.items()}),
        log / "node=02" / "queue_id=3" / "b.parquet",
    )
    events = read(spark, [str(log)], tmp_path / "scratch").events
    assert events.schema == EVENTS
    found = sorted((event.node, event.queue_id, event.msg_id) for event in events.collect())
    assert found == [("01", 3, "m_1"), ("02", 3, "m_1")]


def test_a_corrupt_parquet_row_is_kept_completely(spark: SparkSession, tmp_path: Path) -> None:
    columns = {**{name: [value] for name, value in ROW.items()}, "kind": ["no_such_kind"]}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert (log.events.count(), log.rows) == (0, 1)
    assert ['"msg_id":"m_1"' in row.line for row in log.corrupt.collect()] == [True]


def test_a_log_without_rows_is_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").touch()
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert (log.events.schema, log.events.count(), log.corrupt.count(), log.rows) == (EVENTS, 0, 0, 0)


@pytest.mark.parametrize(
    ("is_parquet", "message"),
    [(True, r"log\.parquet: its end is missing or damaged"), (False, r"log\.parquet: not a Parquet file")],
)
def test_the_message_names_an_incomplete_parquet_file(
    spark: SparkSession, tmp_path: Path, is_parquet: bool, message: str
) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: [value] for name, value in ROW.items()}), path)
    path.write_bytes(path.read_bytes()[:-20] if is_parquet else b'{"ts": 1}\n')
    with pytest.raises(InputError, match=message):
        read(spark, [str(path)], tmp_path / "scratch")


def test_a_column_of_a_wrong_type_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({**{n: [v] for n, v in ROW.items()}, "ts": ["noon"]}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="column ts is string, expected bigint"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_values_from_folder_names_apply_only_to_rows_without_the_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "node=n9"
    folder.mkdir()
    silent = {name: value for name, value in ROW.items() if name != "node"}
    (folder / "log.ndjson").write_bytes(write_ndjson([silent, {**ROW, "node": "own"}]))
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert sorted(row.node for row in log.events.collect()) == ["n9", "own"]


def test_a_column_in_both_the_file_and_the_folder_name_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "node=n9"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), folder / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: node is a column and a folder's name, expected one"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


@pytest.mark.parametrize("folders", ["queue_id=abc", "attrs=x", "topic=a/topic=b"])
def test_a_folder_name_with_an_invalid_column_value_is_refused(
    spark: SparkSession, tmp_path: Path, folders: str
) -> None:
    (tmp_path / folders).mkdir(parents=True)
    (tmp_path / folders / "log.ndjson").write_bytes(write_ndjson([ROW]))
    with pytest.raises(InputError, match=r"log\.ndjson: folder .*expected of"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


def test_other_folder_names_give_no_columns(spark: SparkSession, tmp_path: Path) -> None:
    for number, folder in enumerate(("date=2026-11-24", "value=5", "=b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "log.ndjson").write_bytes(write_ndjson([{**ROW, "seq": number}]))
        rows = pa.Table.from_pylist([{**ROW, "seq": 10 + number}])
        pq.write_table(rows, tmp_path / folder / "log.parquet")
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert (log.events.count(), log.corrupt.count()) == (6, 0)


def test_a_line_with_more_than_one_object_is_not_an_event(spark: SparkSession, tmp_path: Path) -> None:
    one, two = (write_ndjson([{**ROW, "seq": number}]).decode().strip() for number in (1, 2))
    nested = write_ndjson([{**ROW, "attrs": {"a": "} , {", "b": "}"}}]).decode().strip()
    bad = [one + two, f"{one}, {two}", f"{one} garbage", one.replace('"', "'")]
    (tmp_path / "log.ndjson").write_text("\n".join([one, nested + " \r", *bad]) + "\n")
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert log.events.count() == 2
    assert sorted(row.line for row in log.corrupt.collect()) == sorted(bad)


def test_a_partial_line_is_torn_at_the_end_of_a_file_and_corrupt_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    torn = '{"ts":1'
    (tmp_path / "torn +[1] \u00fc.ndjson").write_bytes(write_ndjson([ROW]) + torn.encode())
    (tmp_path / "whole.ndjson").write_bytes(torn.encode() + b"\n" + write_ndjson([{**ROW, "seq": 9}]))
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    (corrupt,) = log.corrupt.collect()
    assert (corrupt.line, corrupt.file.endswith("whole.ndjson")) == (torn, True)
    assert (log.events.count(), log.torn_files) == (2, 1)


@pytest.mark.parametrize(
    ("tail", "events", "torn"),
    [(b'{"ts":"\xe2\x82', 1, 1), (write_ndjson([{**ROW, "seq": 1}]).strip(), 2, 0), (b"  ", 1, 0)],
)
def test_a_log_may_end_within_a_character_or_without_a_newline(
    spark: SparkSession, tmp_path: Path, tail: bytes, events: int, torn: int
) -> None:
    (tmp_path / "2026-11-24T12:00:00.ndjson").write_bytes(write_ndjson([ROW]) + tail)
    (tmp_path / "a b+%.ndjson.gz").write_bytes(gzip.compress(write_ndjson([{**ROW, "seq": 2}]) + tail))
    log = read(spark, [str(tmp_path)], tmp_path / "scratch")
    assert (log.events.count(), log.torn_files, log.corrupt.count()) == (2 * events, 2 * torn, 0)
    assert log.rows == 2 * events


@pytest.mark.parametrize("name", ["log.ndjson.gz", "log.ndjson.zst", "log.parquet"])
def test_an_empty_file_of_a_format_with_a_header_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=rf"{name}: is empty"):
        read(spark, [str(tmp_path)], tmp_path / "scratch")


@pytest.mark.parametrize("first", [b'{"ts":"\xff"}', b"[" * 3000])
def test_an_unreadable_first_line_is_a_corrupt_row(spark: SparkSession, tmp_path: Path, first: bytes) -> None:
    (tmp_path / "log.ndjson").write_bytes(first + b"\n" + write_ndjson([ROW]))
    log = read(spark, [str(tmp_path / "log.ndjson")], tmp_path / "scratch")
    assert (log.events.count(), log.corrupt.count()) == (1, 1)


def test_unknown_columns_and_columns_of_nulls_are_accepted(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([{**ROW, "attrs": None}])
    for kind in (
        pa.timestamp("ns"), pa.time64("us"), pa.duration("us"), pa.decimal256(50), pa.float16(), pa.date32(),
    ):  # fmt: skip
        rows = rows.append_column(str(kind), pa.array([None], kind))
    pq.write_table(rows, tmp_path / "log.parquet")
    log = read(spark, [str(tmp_path / "log.parquet")], tmp_path / "scratch")
    assert [row.attrs for row in log.events.collect()] == [None]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ts", "ts occurs more than once"),
        ("TS", "ts and as TS occurs more than once"),
        ("file_row_number", "file_row_number: DuckDB reserves that name"),
    ],
)
def test_a_duplicate_or_reserved_column_name_is_refused(
    spark: SparkSession, tmp_path: Path, name: str, message: str
) -> None:
    rows = pa.Table.from_pylist([ROW])
    pq.write_table(rows.append_column(name, rows["ts"]), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=rf"log\.parquet: column {message}"):
        read(spark, [str(tmp_path / "log.parquet")], tmp_path / "scratch")
