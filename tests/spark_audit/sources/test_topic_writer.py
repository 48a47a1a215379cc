"""Rows become messages: the sends against a broker inside the test, and the sink in PySpark."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from mqproof.client import MessageError, SendError
from mqproof.spark_audit.sources.store.ranges import StoreError
from mqproof.spark_audit.sources.topic_writer import Written, read_target, write_rows
from mqproof.spark_audit.sources.topics import register
from mqproof.testing import ThreadedBroker


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as broker:
        yield broker


def columns(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def written(broker: ThreadedBroker, names: str, *rows: tuple[Any, ...], **options: str) -> Written:
    target = read_target({"namesrv": broker.name_server, **options}, columns(*names.split()), overwrite=False)
    return write_rows(target, rows)


def test_each_row_is_a_message(rocketmq: ThreadedBroker) -> None:
    assert (
        written(rocketmq, "body", *((f"{n}",) for n in range(200)), topic="Plain", inFlight="7").count == 200
    )
    assert sorted(int(message.body) for message in rocketmq.messages("Plain")) == [*range(200)]


def test_the_columns_of_a_row_are_parts_of_its_message(rocketmq: ThreadedBroker) -> None:
    row = (b"\x00tea", "Rich", "new", "k1 k2", None)
    assert written(rocketmq, "body topic tags keys order_key", row, topic="Other") == Written(1)
    (message,) = rocketmq.messages("Rich")
    assert (message.body, message.tag, message.keys) == (b"\x00tea", "new", ["k1", "k2"])


def test_rows_of_one_key_are_in_one_queue_in_their_order(rocketmq: ThreadedBroker) -> None:
    rows = [(f"{n}", f"key{n % 3}") for n in range(60)]
    written(rocketmq, "body order_key", *rows, topic="Ordered", inFlight="10")
    found = rocketmq.messages("Ordered")
    for key in range(3):
        mine = [message for message in found if int(message.body) % 3 == key]
        assert len({message.queue for message in mine}) == 1
        mine.sort(key=lambda message: message.queue_offset)
        assert [int(message.body) for message in mine] == [n for n in range(60) if n % 3 == key]


def test_a_message_that_is_not_confirmed_fails_the_task(rocketmq: ThreadedBroker) -> None:
    rocketmq.fail_next("send", 3, code="NO_PERMISSION")
    with pytest.raises(SendError, match="NO_PERMISSION"):
        written(rocketmq, "body", ("tea",), topic="Refused")


def test_a_row_without_a_body_or_a_topic_fails_the_task(rocketmq: ThreadedBroker) -> None:
    with pytest.raises(MessageError, match="a row has no body"):
        written(rocketmq, "body", (None,), topic="T")
    with pytest.raises(MessageError, match="a row has no topic"):
        written(rocketmq, "body topic", ("tea", None))


@pytest.mark.parametrize(
    ("names", "options", "problem"),
    [
        ("body", {}, "no topic: expected the option topic, or a column topic"),
        ("topic", {}, "column body is missing"),
        ("body colour", {"topic": "T"}, "column colour: unknown; the columns are body, topic"),
        ("body properties", {"topic": "T"}, "column properties is string, expected map<string,string>"),
        ("body", {"topic": "T", "topics": "T"}, "option topics: unknown"),
        ("body", {"topic": "T", "namesrv": ""}, "option namesrv: expected HOST:PORT"),
        ("body", {"topic": "T", "accessKey": "a"}, "expected both or neither"),
        ("body", {"topic": "T", "inFlight": "0"}, "option inFlight: '0', expected a number from 1"),
    ],
)
def test_an_option_or_a_column_that_is_not_known_is_refused(
    names: str, options: dict[str, str], problem: str
) -> None:
    with pytest.raises(StoreError, match=re.escape(problem)):
        read_target({"namesrv": "127.0.0.1:1", **options}, columns(*names.split()), overwrite=False)


def test_messages_are_not_overwritten() -> None:
    with pytest.raises(StoreError, match="use mode append"):
        read_target({"namesrv": "127.0.0.1:1", "topic": "T"}, columns("body"), overwrite=True)


@pytest.mark.deep("starts Spark's Python workers, 10 s")
def test_spark_writes_a_table_and_a_stream(
    spark: SparkSession, rocketmq: ThreadedBroker, tmp_path: Path
) -> None:
    register(spark)
    options = {"namesrv": rocketmq.name_server, "topic": "Spark"}
    frame = spark.range(20).selectExpr(
        "cast(id AS string) AS body", "concat('k', id) AS keys", "map('n', cast(id AS string)) AS properties"
    )
    frame.write.format("rocketmq").mode("append").options(**options).save()
    found = rocketmq.messages("Spark")
    assert sorted(int(message.body) for message in found) == [*range(20)]
    assert all(message.keys == [f"k{message.properties['n']}"] for message in found)
    with pytest.raises(PySparkException, match="use mode append"):
        frame.write.format("rocketmq").mode("overwrite").options(**options).save()

    read = spark.readStream.format("rocketmq").options(namesrv=rocketmq.name_server, topics="Spark").load()
    checkpoint = str(tmp_path / "checkpoint")
    for _ in range(2):  # the second run has nothing left to copy
        query = (
            read.selectExpr("body", "'Copy' AS topic", "keys")
            .writeStream.format("rocketmq")
            .options(namesrv=rocketmq.name_server, checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    assert sorted(int(message.body) for message in rocketmq.messages("Copy")) == [*range(20)]
