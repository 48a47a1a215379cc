"""Orderly groups, and the group names of members of broadcast groups."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.groups import by_member, is_member, orderly_groups
from mqproof.spark_audit.evidence.options import Options
from tests.spark_audit.conftest import LogBuilder, frame


def test_each_member_of_a_broadcast_group_becomes_a_group(spark: SparkSession) -> None:
    builder = (
        LogBuilder().deliver("m_0", 0, "all", "one").deliver("m_0", 0, "all", "two").deliver("m_0", 0, "g")
    )
    rows = by_member(frame(spark, builder.rows), ("all",)).where("kind = 'deliver'")
    members = rows.select("group", is_member(Options(broadcast=("all",))).alias("is_member")).collect()
    assert {(row.group, row.is_member) for row in members} == {
        ("all@one", True), ("all@two", True), ("g", False),
    }  # fmt: skip


def test_without_a_broadcast_group_the_log_is_unchanged(spark: SparkSession) -> None:
    log = frame(spark, LogBuilder().deliver("m_0", 0).rows)
    assert by_member(log, ()) is log


def test_a_group_is_orderly_by_its_report_or_by_an_option(spark: SparkSession) -> None:
    builder = LogBuilder().add("rebalance", "c-0", group="reported", attrs={"orderly": "true"})
    builder.add("rebalance", "c-1", group="not orderly", attrs={"orderly": "false"})
    rare = frame(spark, builder.rows).where(f.col("kind") == "rebalance")
    named = orderly_groups(rare, Options(orderly=("by option",))).collect()
    assert {row.group for row in named} == {"reported", "by option"}
