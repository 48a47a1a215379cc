"""The place of a row: its broker, and its position in a queue of that broker."""

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.passes.profile import RARE_KINDS
from mqproof.spec.events import Kind


def name_broker(log: DataFrame, brokers: tuple[str, ...], stated: Column | None = None) -> DataFrame:
    """Add `broker`, because queue ids are unique only within a broker.

    A client's event names the broker in attrs.broker; a broker's own event belongs to that broker. If the
    whole log has only one broker, it is that one. `stated` is attrs.broker, if the log has it as a column.
    """
    node = f.col("attrs")["node"]
    # One condition in the other: attributes are looked up in rare rows only.
    victim = f.when(f.col("kind").isin(*RARE_KINDS), f.when(node.isin(*brokers), node))
    stated = f.col("attrs")["broker"] if stated is None else stated
    return log.withColumn("broker", broker_of(f.coalesce(stated, victim), brokers))


def broker_of(stated: Column, brokers: tuple[str, ...]) -> Column:
    own = f.when(f.col("node").isin(*brokers), f.col("node"))
    # In a log with one broker, a crash may be a client's: the event must name its node.
    sole = f.when(f.col("kind") != Kind.CRASH, f.lit(brokers[0])) if len(brokers) == 1 else f.lit(None)
    return f.coalesce(stated, own, sole.cast("string"))


def group_name(node: Column) -> Column:
    """Return the broker name that clients use for a slave or group member.

    It is the node name without its last part.
    """
    return f.regexp_replace(node, "[-_.:/][^-_.:/]*$", "")


def place() -> Column:
    """Return the place of a message: one position of one queue of one broker."""
    return f.struct("broker", "topic", "queue_id", "queue_offset")


def placed_rows(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Return the rows of a profile that have queue offsets, with `broker`."""
    return profiled.where("placed").withColumn("broker", broker_of(f.col("stated"), brokers))


def spans_of(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Return Evidence.spans."""
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
