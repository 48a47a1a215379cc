"""Watching logs as they grow: what is told, and when; a batch that is taken twice counts once."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_audit.audit import violations
from spark_audit.inputs import InputError
from spark_audit.nights import newest
from spark_audit.watch import Source, Watch, watch
from tests.spark_audit.conftest import STEP_US, write_ndjson
from tests.spark_audit.test_nights import LATE_US, OF_TRAFFIC, SHOWN, audited, cut, keys, long_log, story

NO_EVENTS = b"no event\n" + write_ndjson(
    [{"ts": 1, "seq": 0, "node": "nobody", "kind": "deliver", "queue_offset": "many"}]
)


def test_batches_show_what_one_run_would_and_one_that_is_repeated_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Each batch a night of the story whose sum is held against one run over all in test_nights.py.
    # Names that are patterns to Spark are names.
    incoming, state = tmp_path / "incoming[1]", tmp_path / "state[1]"
    incoming.mkdir()
    told: list[Any] = []
    said: list[str] = []
    earlier = 0
    wish = Watch(Source((incoming,)), state, LATE_US, once=True, checks=OF_TRAFFIC)
    for number, rows in enumerate(story((0, 350 * STEP_US, 700 * STEP_US))):
        if number == 2:
            shutil.copytree(state / ".checkpoint", tmp_path / "checkpoint")
            earlier = len(told)
        (incoming / f"{number}.ndjson").write_bytes(write_ndjson(rows) + NO_EVENTS * (number == 0))
        watch(spark, wish, tmp_path, told.append, said.append)
    last = newest(state)
    assert last is not None
    found = pq.read_table(last / "findings").filter(pc.field("cause").is_null()).to_pylist()
    assert {(row["night"], row["rule"], row["group"]) for row in found} == SHOWN
    # The other three are too young: what comes may yet take them back.
    assert {(row["rule"], row["group"]) for row in told} == {
        ("offset-regression", "g"), ("lost-write", "h"), ("lost-write", "g"),
    }  # fmt: skip
    assert len(told) == 3
    assert "2 rows that are none" in said[0]
    (lines,) = [file.read_text().splitlines() for file in state.glob("unreadable/batch-*/part-*.json")]
    kept = [json.loads(line) for line in lines]
    assert {row["line"] for row in kept} == set(NO_EVENTS.decode().splitlines())
    assert {Path(row["file"]).name for row in kept} == {"0.ndjson"}
    # Killed before Spark wrote that the batch is done: it comes again, under the same number.
    shutil.rmtree(state / ".checkpoint")
    shutil.copytree(tmp_path / "checkpoint", state / ".checkpoint")
    watch(spark, wish, tmp_path, told.append, said.append)
    assert (newest(state), len(told), len(said)) == (last, 3, 3)
    # Killed while it was telling.
    (last / "told").unlink()
    shutil.rmtree(state / ".checkpoint")
    shutil.copytree(tmp_path / "checkpoint", state / ".checkpoint")
    watch(spark, wish, tmp_path, told.append, said.append)
    assert told[3:] == told[earlier:3]
    assert f"{3 - earlier} violations; whether they were told" in said[3]


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_of_any_log_the_batches_show_what_one_run_does(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance, log = random.Random(seed), long_log(12)
    last = max(row["ts"] for row in log)
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    wish = Watch(Source((incoming,)), state, LATE_US, once=True, checks=OF_TRAFFIC)
    for number, rows in enumerate(cut(log, sorted(chance.randrange(last) for _ in range(2)))):
        (incoming / f"{number}.ndjson").write_bytes(write_ndjson(rows))
        watch(spark, wish, tmp_path, lambda _: None, lambda _: None)
    left = newest(state)
    assert left is not None
    found = pq.read_table(left / "findings").filter(pc.field("cause").is_null()).to_pylist()
    assert keys(found) == keys(violations(audited(spark, log, tmp_path / "all")))


def test_a_folder_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    wish = Watch(Source((tmp_path / "nowhere",)), tmp_path / "state", STEP_US)
    with pytest.raises(InputError, match="no folder"):
        watch(spark, wish, tmp_path, print, print)
