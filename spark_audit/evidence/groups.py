"""Consumer groups: which topics they read, which consume in order, and each member of a broadcast group."""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.message_columns import (
    RETRY_TOPIC_PREFIX,
)
from mqproof.spec.events import Kind

MEMBER: Final = "@"
"""Between a group that is broadcast to and one of its members."""


def subscribed(spans: DataFrame) -> DataFrame:
    """subscribed_topic and the array `subscribed`: the groups that were handed anything of it."""
    return _readers(spans).groupBy("subscribed_topic").agg(f.collect_set("group").alias("subscribed"))


def _readers(spans: DataFrame) -> DataFrame:
    """subscribed_topic and group: who was handed anything of it."""
    delivered = spans.where((f.col("kind") == Kind.DELIVER) & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    told = delivered.where(f.col("group").isNotNull())
    return told.select(f.col("topic").alias("subscribed_topic"), "group").distinct()


def by_member(log: DataFrame, broadcast: tuple[str, ...]) -> DataFrame:
    """Each member of a group that is broadcast to is a group of its own, GROUP@CLIENT: all that is promised
    to a group is promised to it."""
    if not broadcast:
        return log
    member = f.concat_ws(MEMBER, "group", f.coalesce("client", "node"))
    return log.withColumn("group", f.when(f.col("group").isin(*broadcast), member).otherwise(f.col("group")))


def is_member(options: Options) -> Column:
    """Whether `group` is one that by_member made."""
    group = f.col("group")
    ours = [group.startswith(name + MEMBER) for name in options.broadcast]
    return f.coalesce(reduce(Column.__or__, ours, f.lit(False)), f.lit(False))


def orderly_groups(rare: DataFrame, options: Options) -> DataFrame:
    """group: those that consume in order, as the user or a member's `rebalance` says."""
    said = rare.where((f.col("kind") == Kind.REBALANCE) & (f.col("attrs")["orderly"] == "true"))
    given = f.array(*map(f.lit, options.orderly)).cast("array<string>")
    named = rare.sparkSession.range(1).select(f.explode(given).alias("group"))
    return said.select("group").unionByName(named).where("group IS NOT NULL").distinct()
