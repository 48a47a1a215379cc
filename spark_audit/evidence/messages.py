"""The exact aggregates of the messages that are checked individually."""

from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.places import place
from mqproof.spark_audit.passes.message_columns import (
    STORED_STATUSES,
    WAITING_TOPICS,
    count,
)
from mqproof.spec.events import Kind

OF_HALVES: Final = (Kind.HALF, Kind.COMMIT)


def messages_of(rows: DataFrame) -> DataFrame:
    """Return the exact aggregates of some messages; checks examine details only if these show a problem."""
    kind, status = f.col("kind"), f.col("status")
    is_append = kind == Kind.APPEND
    acked = (kind == Kind.SEND_ACK) & (status == "SEND_OK")
    stored = kind.isin(Kind.SEND_ACK, Kind.APPEND) & f.col("queue_offset").isNotNull()
    producer_side = ~kind.isin(Kind.DELIVER, *OF_HALVES)
    waits = f.col("topic").isin(*WAITING_TOPICS)
    sums = rows.groupBy("msg_id").agg(
        f.max(f.when(producer_side & ~waits, f.col("topic"))).alias("topic"),
        count(kind == Kind.SEND, "sends"),
        f.max(f.when(kind == Kind.SEND, f.coalesce("attempt", f.lit(1)))).alias("attempt_max"),
        f.min(f.when(kind == Kind.SEND, f.col("ts"))).alias("send_ts"),
        count(acked, "acked"),
        f.min(f.when(acked, f.col("ts"))).alias("acked_ts"),
        count((kind == Kind.SEND_ACK) & status.isin(*STORED_STATUSES[1:]), "soft_acked"),
        f.max(f.when((kind == Kind.SEND_ACK) & (status != "SEND_OK"), status)).alias("soft_status"),
        count((kind == Kind.SEND_FAIL) & (status == "unknown"), "unknown"),
        f.size(f.collect_set(f.when(kind == Kind.SEND, f.col("node")))).alias("producers"),
        f.min(f.when(is_append, f.col("ts"))).alias("appended_ts"),
        count(is_append, "appends"),
        count(is_append & (f.col("commit_offset") >= f.col("kept_end")), "cut"),
        f.collect_set(f.when(is_append, _record())).alias("records"),
        f.collect_set(f.when(acked, f.col("broker"))).alias("acked_by"),
        count(kind == Kind.DELIVER, "deliveries"),
        count(kind == Kind.HALF, "halves"),
        count(kind == Kind.COMMIT, "commits"),
        f.max("tags").alias("tags"),
        f.min(f.when(kind == Kind.DELIVER, f.col("ts"))).alias("delivered_ts"),
        f.collect_set(f.when(stored, place())).alias("places"),
        f.collect_set(f.when(kind == Kind.DELIVER, f.col("group"))).alias("groups"),
        f.coalesce(f.bool_or(is_append & waits), f.lit(False)).alias("is_delayed"),
        f.collect_set(f.when(is_append & ~waits, place())).alias("put_at"),
    )
    # The producer of a delayed message receives its place in the internal topic, which no consumer reads.
    places = f.when(f.col("is_delayed"), f.col("put_at")).otherwise(f.col("places"))
    return sums.withColumn("places", places).drop("is_delayed", "put_at")


def _record() -> Column:
    """Return the record of an append: its place and its outcome."""
    is_cut = f.coalesce(f.col("commit_offset") >= f.col("kept_end"), f.lit(False))
    return f.struct("broker", "topic", "queue_id", "queue_offset", "flush_mode", is_cut.alias("is_cut"))
