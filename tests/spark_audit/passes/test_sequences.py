"""Sequences find the same irregular rows from a summary of each split as a check of every row finds."""

import random

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from mqproof.spark_audit.passes import sequences
from mqproof.spark_audit.passes.sequences import (
    find_irregular_ranges,
    irregular_steps,
    numbered,
    of_partition,
)
from mqproof.spark_audit.passes.steps import SEQUENCE
from mqproof.spark_audit.scan.run_over_log import fold
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.spark_schema import PASS

COLUMNS = (
    "kind string, node string, group string, broker string, topic string, queue_id int,"
    " queue_offset bigint, seq bigint, ts bigint"
)
SHOWN = (*SEQUENCE, "seq", "previous", "queue_offset", "from_ts")


def one_by_one(events: DataFrame) -> DataFrame:
    in_order = Window.partitionBy(*SEQUENCE).orderBy("seq")
    steps = events.withColumn("previous", f.lag("queue_offset").over(in_order)).withColumn(
        "from_ts", f.lag("ts").over(in_order)
    )
    return steps.where("queue_offset < previous OR (kind = 'deliver' AND queue_offset > previous + 1)")


def random_offsets(chance: random.Random, node: str) -> list[int]:
    """Return offsets of deliveries: in order, except for repeats, swaps, jumps and steps back."""
    offsets: list[int] = []
    at = chance.randrange(100)
    while len(offsets) < 60:
        match chance.randrange(24):
            case 0:
                offsets[-1:] = [at, *offsets[-1:]]
            case 1:
                at += chance.choice((1, 7, 200))
            case 2:
                at = max(0, at - chance.choice((1, 3, 8, 40)))
            case 3:
                offsets += offsets[-2:]
        offsets.append(at)
        at += 1
    return offsets if node != "calm" else list(range(60))


def rows(seed: int) -> list[tuple[str, str, str | None, str, str, int, int, int, int]]:
    chance = random.Random(seed)
    all_rows = []
    for node in ("calm", "n1", "n2"):
        queues = [
            (kind, None if queue == 2 else "g", queue, random_offsets(chance, node))
            for kind in ("deliver", "offset_commit")
            for queue in range(3)
        ]
        seq = 0
        while any(offsets for *_, offsets in queues):
            kind, group, queue, offsets = chance.choice([one for one in queues if one[-1]])
            for _ in range(min(chance.randrange(1, 9), len(offsets))):
                all_rows.append((kind, node, group, "b", "t", queue, offsets.pop(0), seq, 10 * seq))
                seq += 1
    chance.shuffle(all_rows)
    return all_rows


def runs(shared: DataFrame) -> DataFrame:
    """Return the runs of a log whose partitions are the splits."""
    rows = shared.withColumn("attrs", f.create_map(f.lit("broker"), "broker"))
    return fold(EventLog.of(rows), [of_partition], PASS).withColumn("broker", f.col("stated"))


@pytest.mark.parametrize("in_order", [True, False])
def test_exactly_the_irregular_steps_are_found(
    spark: SparkSession, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_rows = [(kind, f"{node}-{seed}", *rest) for seed in range(12) for kind, node, *rest in rows(seed)]
    events = spark.createDataFrame(all_rows, COLUMNS).cache()
    shared = events.repartitionByRange(3, "seq") if in_order else events.repartition(3)
    found = sorted(events_of(irregular_steps(events, find_irregular_ranges(runs(shared)))), key=str)
    expected = sorted(events_of(one_by_one(events)), key=str)
    assert len(expected) > 500
    assert found == expected
    assert not any(str(step[1]).startswith("calm") for step in found)
    few = assert_numbered_rows_suffice(events, find_irregular_ranges(runs(shared)), expected)
    monkeypatch.setattr(sequences, "_NUMBERS_MAX", 100)
    assert few <= assert_numbered_rows_suffice(events, find_irregular_ranges(runs(shared)), expected)
    if in_order:
        # If a node's rows are in order, only the rows of the steps themselves are read again.
        assert few < events.count() / 2
    events.unpersist()


def assert_numbered_rows_suffice(
    events: DataFrame, ranges: DataFrame, expected: list[tuple[object, ...]]
) -> int:
    """Assert that the numbered rows are sufficient to find the steps; return the number of these rows."""
    ranges_by_number = numbered(ranges)
    in_stretch = f"(node, seq >> {ranges_by_number.bits}) IN (SELECT (node, number) FROM numbers)"
    with duckdb.connect() as connection:
        connection.register("numbers", ranges_by_number.numbers)
        connection.register("log", events.toArrow())
        taken: pa.Table = connection.sql(f"SELECT * FROM log WHERE {in_stretch}").to_arrow_table()
    found = irregular_steps(events.sparkSession.createDataFrame(taken), ranges)
    assert sorted(events_of(found), key=str) == expected
    return len(taken)


def events_of(steps: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in steps.select(*SHOWN).collect()]
