"""Reads topics of a running cluster as a table and as a stream, over real sockets."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from mqproof.impl.client.blocking import BlockingClient
from mqproof.impl.remoting.message import Message
from mqproof.spark_audit.incremental.spark_watch import watch_on_spark
from mqproof.spark_audit.incremental.watch import Source, Watch
from mqproof.spark_audit.sources.topic_positions import read_options
from mqproof.spark_audit.sources.topics import Task, register, slices
from tests.impl.command.test_cli import SERVE, server
from tests.spark_audit.conftest import write_ndjson
from tests.spark_audit.incremental.test_spark_watch import read_batches

OPTIONS = read_options({"namesrv": "127.0.0.1:9876", "topics": "T"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of its name server."""
    with server(*SERVE, "--store", str(tmp_path_factory.mktemp("topics"))) as (_, at):
        yield at["namesrv"]


def send(cluster: str, topic: str, *bodies: bytes) -> None:
    with BlockingClient(cluster) as client:
        for body in bodies:
            client.send(Message(topic, body, {"TAGS": "tag", "KEYS": f"key-{body.decode()}"}))


def bodies(frame: DataFrame) -> list[bytes]:
    return sorted(row.body for row in frame.select("body").collect())


def stream(spark: SparkSession, cluster: str, **options: Any) -> DataStreamReader:
    register(spark)
    return spark.readStream.format("rocketmq").option("namesrv", cluster).options(**options)


def drain(frame: DataFrame, out: Path) -> None:
    """Run the query to the end of the existing input, and write its rows below `out`."""
    query = (
        frame.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(out / "checkpoint"))
        .start(str(out / "rows"), format="parquet")
    )
    assert query.awaitTermination(120)


def test_a_watched_topic_is_read_in_bounded_batches(
    spark: SparkSession, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each message has two lines; a queue's part of a batch is rounded up.
    logs = [
        write_ndjson([{"ts": 1, "seq": seq, "node": f"n{node:02}", "kind": "crash"} for seq in range(2)])
        for node in range(16)
    ]
    send(cluster, "Watched", *logs, b"no event")
    batches = read_batches(monkeypatch)
    topics = Source(topics={"namesrv": cluster, "topics": "Watched"})
    request = Watch(topics, tmp_path / "state", 0, once=True, batch_messages=9)
    watch_on_spark(spark, request, tmp_path, print, print)
    assert len(batches) == 2
    assert all(batch.nodes for batch in batches)
    read = sorted(event for batch in batches for event in batch.nodes)
    assert read == [(f"n{node:02}", seq) for node in range(16) for seq in range(2)]
    assert sum(batch.rows for batch in batches) == len(read) + 1


def test_a_topic_is_read_as_a_table(spark: SparkSession, cluster: str) -> None:
    register(spark)
    send(cluster, "table", *(b"%d" % n for n in range(20)))
    frame = (
        spark.read.format("rocketmq")
        .option("namesrv", cluster)
        .option("topics", "table")
        .option("splitOffsets", "3")
        .load()
    )
    assert bodies(frame) == sorted(b"%d" % n for n in range(20))
    row = frame.where("keys = 'key-7'").first()
    assert row is not None
    assert (row.topic, row.broker, row.tags, row.body, row.reconsume_times) == (
        "table",
        "broker-a",
        "tag",
        b"7",
        0,
    )
    assert row.properties["KEYS"] == "key-7"
    assert row.size > len(row.body)
    assert row.stored_ms >= row.born_ms > 0
    places = [(each.queue_id, each.queue_offset) for each in frame.collect()]
    assert len(set(places)) == 20


def test_a_restarted_query_continues_and_returns_each_message_once(
    spark: SparkSession, cluster: str, tmp_path: Path
) -> None:
    send(cluster, "stream", *(b"a%d" % n for n in range(10)))
    frame = stream(spark, cluster, topics="stream", maxOffsetsPerTrigger="4").load()
    drain(frame, tmp_path)
    assert bodies(spark.read.parquet(str(tmp_path / "rows"))) == sorted(b"a%d" % n for n in range(10))
    # The limit requires several batches.
    assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) > 1
    send(cluster, "stream", *(b"b%d" % n for n in range(5)))
    drain(frame, tmp_path)
    drain(frame, tmp_path)
    wanted = sorted([b"a%d" % n for n in range(10)] + [b"b%d" % n for n in range(5)])
    assert bodies(spark.read.parquet(str(tmp_path / "rows"))) == wanted


def test_a_batch_that_failed_is_read_again_with_the_same_rows(
    spark: SparkSession, cluster: str, tmp_path: Path
) -> None:
    send(cluster, "again", *(b"%d" % n for n in range(6)))
    frame = stream(spark, cluster, topics="again").load()
    tries: list[list[bytes]] = []

    def note(batch: DataFrame, _: int) -> None:
        tries.append(bodies(batch))
        if len(tries) == 1:
            send(cluster, "again", b"late")
            raise RuntimeError("the sink fails")

    def attempt() -> None:
        query = (
            frame.writeStream.foreachBatch(note)
            .trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path))
            .start()
        )
        assert query.awaitTermination(120)

    with pytest.raises(PySparkException):
        attempt()
    attempt()
    first = [b"%d" % n for n in range(6)]
    assert tries == [first, first, [b"late"]]


def test_wrong_options_are_reported(spark: SparkSession, cluster: str) -> None:
    register(spark)
    read = spark.read.format("rocketmq")
    with pytest.raises(PySparkException, match="option topics: expected names of topics"):
        read.option("namesrv", cluster).load().collect()
    with pytest.raises(PySparkException, match="no name server knows topic absent"):
        read.option("namesrv", cluster).option("topics", "absent").load().collect()


def test_a_queue_whose_broker_is_unavailable_has_no_task() -> None:
    assert slices({"T@a:0": 7}, {"T@a:0": 7, "T@b:0": 4}, OPTIONS) == [Task("T@b:0", 0, 4)]


def test_a_long_queue_is_read_by_several_tasks() -> None:
    some = replace(OPTIONS, split_offsets=4)
    assert slices({"T@a:0": 1}, {"T@a:0": 10}, some) == [
        Task("T@a:0", 1, 5), Task("T@a:0", 5, 9), Task("T@a:0", 9, 10)
    ]  # fmt: skip
    assert slices({"T@a:0": 1}, {"T@a:0": 1}, some) == [Task("", 0, 0)]
