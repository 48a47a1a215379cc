"""Where a row belongs: its broker, and its place in a queue of that broker."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.passes.profile import RARE_KINDS
from mqproof.spec.events import Kind


def name_broker(log: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Add `broker`: queue 3 of one broker is not queue 3 of another.

    A client's event names it in attrs.broker; a broker's own event is its own. With one broker in the whole
    log there is nothing to tell apart.
    """
    is_victim = f.col("kind").isin(*RARE_KINDS) & f.col("attrs")["node"].isin(*brokers)
    victim = f.when(is_victim, f.col("attrs")["node"])
    stated = f.coalesce(f.col("attrs")["broker"], victim)
    return log.withColumn("broker", broker_of(stated, brokers))


def broker_of(stated: Column, brokers: tuple[str, ...]) -> Column:
    own = f.when(f.col("node").isin(*brokers), f.col("node"))
    # A crash in a log of one broker may well be a client's: it must say whose.
    sole = f.when(f.col("kind") != Kind.CRASH, f.lit(brokers[0])) if len(brokers) == 1 else f.lit(None)
    return f.coalesce(stated, own, sole.cast("string"))


def group_name(node: Column) -> Column:
    """What clients call the broker of a slave or of a member of a group: its node's name but for the end."""
    return f.regexp_replace(node, "[-_.:/][^-_.:/]*$", "")


def place() -> Column:
    """Where a message is: one position of one queue of one broker."""
    return f.struct("broker", "topic", "queue_id", "queue_offset")


def placed_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Of a profile what lies at offsets of queues, with `broker`."""
    return profiled.where("placed").withColumn("broker", broker_of(f.col("stated"), brokers))


def spans_of(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Evidence.spans."""
    return (
        placed_rows(profiled, brokers)
        .where(f.col("kind").isin(Kind.DELIVER, Kind.OFFSET_COMMIT))
        .groupBy("kind", "node", "group", "broker", "topic", "queue_id")
        .agg(
            f.sum("rows").alias("rows"),
            f.max("seq_max").alias("seq_max"),
            f.min("offset_min").alias("offset_min"),
            f.max("offset_max").alias("offset_max"),
            f.min("first_ts").alias("first_ts"),
            f.max("last_ts").alias("last_ts"),
        )
    )
