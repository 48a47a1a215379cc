"""Consumer groups: the topics they read, which of them consume in order, and members of broadcast groups."""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, any_of
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.passes.message_columns import (
    RETRY_TOPIC_PREFIX,
)
from mqproof.spec.events import Kind

MEMBER: Final = "@"
"""Separates the name of a broadcast group from that of a member."""


def subscribed(spans: DataFrame) -> DataFrame:
    """Return subscribed_topic and the array `subscribed`: the groups that received messages of the topic."""
    return _readers(spans).groupBy("subscribed_topic").agg(f.collect_set("group").alias("subscribed"))


def _readers(spans: DataFrame) -> DataFrame:
    """Return subscribed_topic and group: the groups that received any message of the topic."""
    delivered = spans.where((f.col("kind") == Kind.DELIVER) & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    of_groups = delivered.where(f.col("group").isNotNull())
    return of_groups.select(f.col("topic").alias("subscribed_topic"), "group").distinct()


def by_member(log: DataFrame, broadcast: tuple[str, ...]) -> DataFrame:
    """Make each member of a broadcast group a group of its own, GROUP@CLIENT.

    All guarantees for a group then apply to each member.
    """
    if not broadcast:
        return log
    member = f.concat_ws(MEMBER, "group", f.coalesce("client", "node"))
    # All members have the subscription of the group, which a broker records once.
    is_of_member = f.col("group").isin(*broadcast) & ~f.col("kind").isin(Kind.SUBSCRIBE, Kind.UNSUBSCRIBE)
    return log.withColumn("group", f.when(is_of_member, member).otherwise(f.col("group")))


def subscribing_group(options: Options, column: str = "group") -> Column:
    """Return the group that subscribes: that of the column, or the broadcast group that it is a member of."""
    group = f.col(column)
    named = [f.when(group.startswith(name + MEMBER), f.lit(name)) for name in options.broadcast]
    return f.coalesce(*named, group)


def is_member(options: Options) -> Column:
    """Return whether `group` is one created by by_member."""
    group = f.col("group")
    is_of_group = [group.startswith(name + MEMBER) for name in options.broadcast]
    return f.coalesce(any_of(is_of_group, f.lit(False)), f.lit(False))


def orderly_groups(rare: DataFrame, options: Options) -> DataFrame:
    """Return the groups that consume in order, according to the user or to a member's `rebalance` event."""
    reported = rare.where((f.col("kind") == Kind.REBALANCE) & (f.col("attrs")["orderly"] == "true"))
    given = f.array(*map(f.lit, options.orderly)).cast("array<string>")
    named = rare.sparkSession.range(1).select(f.explode(given).alias("group"))
    return reported.select("group").unionByName(named).where(f.col("group").isNotNull()).distinct()
