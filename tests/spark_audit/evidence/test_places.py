"""The broker of a row: the one that it names, else its own node, else the only broker of the log."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.places import group_name, name_broker
from tests.spark_audit.conftest import LogBuilder, frame


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        (("b", "other"), {"consumer": "b", "b": "b", "silent": None, "harness": "other"}),
        (("b",), {"consumer": "b", "b": "b", "silent": "b", "harness": None}),
    ],
)
def test_a_row_belongs_to_the_broker_that_it_names(
    spark: SparkSession, brokers: tuple[str, ...], expected: dict[str, str | None]
) -> None:
    builder = (
        LogBuilder(subscribed=())
        .add("send", "consumer", attrs={"broker": "b"})
        .add("append", "b")
        .add("send", "silent")
    )
    builder.add("crash", "harness", attrs={"node": "other"})
    rows = name_broker(frame(spark, builder.rows), brokers).where(f.col("node").isin(*expected)).collect()
    assert {row.node: row.broker for row in rows} == expected


@pytest.mark.parametrize(
    ("node", "name"), [("broker-a-n0", "broker-a"), ("broker-a:1", "broker-a"), ("alone", "alone")]
)
def test_clients_know_a_member_by_its_group(spark: SparkSession, node: str, name: str) -> None:
    (row,) = spark.createDataFrame([(node,)], ["node"]).select(group_name(f.col("node"))).collect()
    assert row[0] == name
