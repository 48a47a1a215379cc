"""Watches growing logs on Spark: which files its stream takes, and that a repeated batch counts once.

test_local_watch.py tests the judgement of batches, which both engines share, without Spark.
"""

import json
import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from mqproof.spark_audit.audit import violations
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.incremental.carried_state import Manifest
from mqproof.spark_audit.incremental.spark_watch import _files, _read, watch_on_spark
from mqproof.spark_audit.incremental.state_folder import SCHEMA_VERSION, newest, state_path
from mqproof.spark_audit.incremental.watch import Source, Watch
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import STEP_US, write_ndjson
from tests.spark_audit.incremental.test_checkpoint import (
    LATE_US,
    OF_TRAFFIC,
    SHOWN,
    audited,
    cut,
    keys,
    long_log,
    split_log,
    write_state,
)

NO_CHECKS: dict[str, Check] = {}
"""The checks do not affect which files are read, and when."""

OF_LOSS = {name: EVENT_CHECKS[name] for name in ("DELIV-1", "DELIV-5")}
"""Checks of SHOWN whose violations are reported before the last batch; a deep test runs the others."""

NO_EVENTS = b"no event\n" + write_ndjson(
    [{"ts": 1, "seq": 0, "node": "unknown", "kind": "deliver", "queue_offset": "many"}]
)


@pytest.mark.deep("on Spark; test_local_watch.py has these batches on DuckDB")
def test_batches_find_the_violations_of_one_run_and_a_repeated_batch_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Each batch is a part of the log that test_checkpoint.py compares with one run over the whole log.
    # The names are patterns for Spark, but must be taken literally.
    incoming, state = tmp_path / "incoming[1]", tmp_path / "state[1]"
    incoming.mkdir()
    reported: list[Any] = []
    lines: list[str] = []
    earlier = 0
    request = Watch(Source((incoming,)), state, LATE_US, once=True, checks=OF_LOSS)
    for number, rows in enumerate(split_log((0, 350 * STEP_US, 700 * STEP_US))):
        if number == 2:
            shutil.copytree(state / ".checkpoint", tmp_path / "checkpoint")
            earlier = len(reported)
        (incoming / f"{number}.ndjson").write_bytes(write_ndjson(rows) + NO_EVENTS * (number == 0))
        watch_on_spark(spark, request, tmp_path, reported.append, lines.append)
    last = newest(state)
    assert last is not None
    found = pq.read_table(last / "findings").filter(pc.field("cause").is_null()).to_pylist()
    assert {(row["night"], row["rule"], row["group"]) for row in found} == {
        each for each in SHOWN if each[1] in ("lost-write", "offset-regression")
    }
    # The other violations are too recent: later events may explain them.
    assert {(row["rule"], row["group"]) for row in reported} == {
        ("offset-regression", "g"), ("lost-write", "h"), ("lost-write", "g"),
    }  # fmt: skip
    assert len(reported) == 4
    assert "2 rows that are not events" in lines[0]
    (written,) = [file.read_text().splitlines() for file in state.glob("unreadable/batch-*/part-*.json")]
    kept = [json.loads(line) for line in written]
    assert {row["line"] for row in kept} == set(NO_EVENTS.decode().splitlines())
    assert {Path(row["file"]).name for row in kept} == {"0.ndjson"}
    # Killed before Spark recorded the end of the batch: it is repeated with the same number.
    shutil.rmtree(state / ".checkpoint")
    shutil.copytree(tmp_path / "checkpoint", state / ".checkpoint")
    watch_on_spark(spark, request, tmp_path, reported.append, lines.append)
    assert (newest(state), len(reported), len(lines)) == (last, 4, 3)
    # Killed during the report.
    (last / "reported").unlink()
    shutil.rmtree(state / ".checkpoint")
    shutil.copytree(tmp_path / "checkpoint", state / ".checkpoint")
    watch_on_spark(spark, request, tmp_path, reported.append, lines.append)
    assert reported[4:] == reported[earlier:4]
    assert f"{4 - earlier} violations, possibly reported before" in lines[3]


@pytest.mark.deep("20 logs, each watched in batches on Spark")
@pytest.mark.parametrize("seed", range(20))
def test_the_batches_of_any_log_find_the_violations_of_one_run(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, log = random.Random(seed), long_log(12)
    last = max(row["ts"] for row in log)
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    (tmp_path / "all").mkdir()
    request = Watch(Source((incoming,)), state, LATE_US, once=True, checks=OF_TRAFFIC)
    for number, rows in enumerate(cut(log, sorted(chance.randrange(last) for _ in range(2)))):
        (incoming / f"{number}.ndjson").write_bytes(write_ndjson(rows))
        watch_on_spark(spark, request, tmp_path, lambda _: None, lambda _: None)
    left = newest(state)
    assert left is not None
    found = pq.read_table(left / "findings").filter(pc.field("cause").is_null()).to_pylist()
    assert keys(found) == keys(violations(audited(spark, log, tmp_path / "all")))


def events(node: str, seqs: range = range(3)) -> list[dict[str, Any]]:
    return [{"ts": 1000 + seq, "seq": seq, "node": node, "kind": "crash"} for seq in seqs]


def test_watch_reads_files_by_the_rules_of_a_run_and_continues_after_the_removal_of_an_invalid_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming = tmp_path / "incoming"
    with_column = incoming / "node=folder 1+"
    with_column.mkdir(parents=True)
    named = [{**row, "node": None} for row in events("")]
    (with_column / "a[1].ndjson").write_bytes(write_ndjson(named))
    columns = pa.Table.from_pylist(events("")).drop_columns(["node"])
    unsigned = columns.set_column(columns.column_names.index("seq"), "seq", pa.array([3, 4, 5], pa.uint64()))
    pq.write_table(unsigned, with_column / "b.parquet")
    # The last write of a killed node.
    (incoming / "torn.ndjson").write_bytes(write_ndjson(events("torn")) + b'{"ts":1,"seq":3,"no')
    # Copies are counted once, and files that are not complete logs yet are ignored.
    shutil.copy(incoming / "torn.ndjson", incoming / "torn-copy.ndjson")
    for name in ("c.ndjson.part", "c.parquet.tmp", ".c.ndjson", "_c.ndjson"):
        (incoming / name).write_bytes(b"{")
    bad = incoming / "bad.parquet"
    pq.write_table(pa.table({"ts": ["noon"], "seq": [1], "node": ["n"], "kind": ["crash"]}), bad)
    batches = read_batches(monkeypatch)
    request = Watch(Source((incoming,)), tmp_path / "state", LATE_US, once=True)
    for _ in range(2):
        with pytest.raises(InputError, match=r"bad\.parquet: column ts is string, expected bigint"):
            watch_on_spark(spark, request, tmp_path, print, print)
    bad.unlink()
    watch_on_spark(spark, request, tmp_path, print, print)
    rows = [("folder 1+", seq) for seq in range(6)] + [("torn", seq) for seq in range(3)]
    copied = f"torn.ndjson is {incoming / 'torn-copy.ndjson'} again: counted once"
    assert [(batch.nodes, batch.rows, batch.torn_files) for batch in batches] == [(rows, 9, 1)]
    assert batches[0].lines[0].endswith(copied)


@dataclass(frozen=True)
class Batch:
    """What a watch read as one batch."""

    nodes: list[tuple[str, int]]
    """Node and number of each event."""
    rows: int
    torn_files: int
    lines: list[str]


def read_batches(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Let `watch` only read its batches, without a judgement, into the returned list."""
    batches: list[Batch] = []

    def keep(
        spark: SparkSession, request: Watch, rows: DataFrame, _: int, scratch: Path, *__: object
    ) -> None:
        log = _read(spark, request.source, rows, scratch / "batch")
        nodes = sorted((row["node"], row["seq"]) for row in log.events.collect())
        batches.append(Batch(nodes, log.rows, log.torn_files, list(log.inputs.repeat_messages())))

    monkeypatch.setattr("mqproof.spark_audit.incremental.spark_watch._batch", keep)
    return batches


@pytest.mark.parametrize("names", [("a",), ("a, b", "c{1}/d"), ("a", "a/b")])
def test_files_of_all_folders_are_read_in_one_order_with_bounded_batches(
    spark: SparkSession, tmp_path: Path, names: tuple[str, ...]
) -> None:
    folders = tuple(tmp_path / "incoming[1]" / name for name in names)
    # A watch of c{1} must not read files of c(1).
    for folder in (*folders, tmp_path / "incoming[1]" / "c(1)" / "d"):
        (folder / "x").mkdir(parents=True, exist_ok=True)
        (folder / "x" / "log.ndjson.part").touch()
    files = [folders[number % len(folders)] / "x" / f"{number}.ndjson" for number in range(4)]
    for number, file in enumerate(files):
        file.write_bytes(b"7 bytes")
        os.utime(file, (1_700_000_000 - number,) * 2)
    (tmp_path / "incoming[1]" / "c(1)" / "d" / "log.ndjson").touch()
    taken: list[list[Path]] = []

    def stream() -> None:
        listed = _files(spark, folders, 14).writeStream.option("checkpointLocation", str(tmp_path / "state"))
        note = listed.foreachBatch(
            lambda rows, _: taken.append([_named(row["file"]) for row in rows.collect()])
        )
        note.trigger(availableNow=True).start().awaitTermination()

    stream()
    assert [sorted(batch) for batch in taken if batch] == [sorted(files[2:]), sorted(files[:2])]
    old = folders[0] / "old.ndjson"
    old.write_bytes(b"7 bytes")
    os.utime(old, (1_600_000_000,) * 2)
    taken.clear()
    stream()
    assert [batch for batch in taken if batch] == [[old]]


def _named(file: str) -> Path:
    return Path(file.removeprefix("file:"))


def test_a_batch_that_is_in_the_state_is_not_judged_again(spark: SparkSession, tmp_path: Path) -> None:
    # The process was killed after this batch, before Spark recorded its end; then a run followed.
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    (incoming / "a.ndjson").write_bytes(write_ndjson(events("n")))
    (write_state(spark, state, Manifest(SCHEMA_VERSION, 2, 0, 0, batch=0)) / "reported").touch()
    lines: list[str] = []
    watch_on_spark(
        spark, Watch(Source((incoming,)), state, LATE_US, once=True), tmp_path, print, lines.append
    )
    assert (lines, newest(state)) == ([], state_path(state, 2))


def test_a_state_of_another_watch_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tuple(tmp_path / name for name in "ab")
    for folder in folders:
        folder.mkdir()
    log = folders[0] / "log.ndjson"
    log.write_bytes(write_ndjson(events("n")))
    batches: list[list[Path]] = []

    def keep_names(_spark: object, _request: object, rows: DataFrame, *_: object) -> None:
        batches.append([_named(row["file"]) for row in rows.collect()])

    # No batch is judged: only the sources and the stream matter here.
    monkeypatch.setattr("mqproof.spark_audit.incremental.spark_watch._batch", keep_names)

    def watch_sources(source: Source) -> None:
        watch_on_spark(spark, Watch(source, tmp_path / "state", LATE_US, once=True), tmp_path, print, print)

    for source in (Source(folders), Source((*reversed(folders), folders[0]))):
        watch_sources(source)
    assert [batch for batch in batches if batch] == [[log]], "the same folders in another order have no news"
    for other in (Source(folders[:1]), Source(folders, {"topics": "t"})):
        with pytest.raises(InputError, match=r"state: belongs to a watch of .*/a, .*/b, expected the same"):
            watch_sources(other)
