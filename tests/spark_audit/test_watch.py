"""Watching logs as they grow: what is told, and when; a batch that is taken twice counts once."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_audit.checks import EVENT_CHECKS
from spark_audit.inputs import InputError
from spark_audit.nights import newest, violations_so_far
from spark_audit.watch import Source, Watch, watch
from tests.spark_audit.conftest import STEP_US, Story, write_ndjson

CHECKS = {name: EVENT_CHECKS[name] for name in ("DELIV-1", "DELIV-3")}


def test_a_violation_is_told_once_it_is_certain_and_a_batch_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story().stored("m_twice", 0).stored("m_lost", 1).stored("m_2", 2).deliver("m_twice", 0)
    story.deliver("m_2", 2)
    half = len(story.rows)
    story.deliver("m_twice", 0, node="again")
    incoming, state = tmp_path / "incoming", tmp_path / "state"
    incoming.mkdir()
    told: list[Any] = []
    said: list[str] = []

    def look() -> list[str]:
        told.clear()
        wish = Watch(Source((incoming,)), state, 6 * STEP_US, once=True, checks=CHECKS)
        watch(spark, wish, tmp_path, told.append, said.append)
        return [row["msg_id"] for row in told]

    (incoming / "1.ndjson").write_bytes(write_ndjson(story.rows[:half]) + b"no event\n")
    # Acknowledged six seconds ago: the delivery may yet come.
    assert look() == []
    (incoming / "2.ndjson").write_bytes(write_ndjson(story.rows[half:]))
    shutil.copytree(state / ".checkpoint", tmp_path / "checkpoint")
    look()
    last = newest(state)
    assert last is not None
    counts = {rule: count for _, rule, count, *_ in violations_so_far(last)}
    assert counts == {"lost-write": 1, "duplicate-delivery": 1}
    # Killed before Spark wrote that the batch is done: it comes again, under the same number.
    shutil.rmtree(state / ".checkpoint")
    shutil.copytree(tmp_path / "checkpoint", state / ".checkpoint")
    assert look() == []
    assert newest(state) == last
    assert any("1 rows that are none" in line for line in said)


def test_a_folder_that_is_none_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    wish = Watch(Source((tmp_path / "nowhere",)), tmp_path / "state", STEP_US)
    with pytest.raises(InputError, match="no folder"):
        watch(spark, wish, tmp_path, print, print)
