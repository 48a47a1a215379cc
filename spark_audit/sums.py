"""What happened to each message, in numbers only, keyed by a hash: tells which need a look one by one.

Clean is a message that was delivered exactly once to each group of its topic, or that nobody owes anything:
no check can find anything about it, not even something explained. The checks' own sums, with places and
groups as they are, are then made of the few others.

Each group has a hash; as many deliveries as groups, with the groups' hashes as their exclusive or, are one to
each: anything else would need an even number for some group. Two messages whose ids have one 64-bit hash are
taken for one, which then has twice of everything, and is looked at.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spec.events import Kind

KINDS: Final = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.APPEND, Kind.DELIVER)
"""What happens to a message by its id."""


STORED_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


def message_key() -> Column:
    return f.xxhash64("msg_id")


def message_sums(rows: DataFrame, groups: DataFrame) -> DataFrame:
    """One row a message: key, cell, what the tallies count, and `clean`.

    `rows` are events of KINDS with their cell and the columns that evidence.on_broker adds; `groups` has
    subscribed_topic and the array subscribed.
    """
    kind, status = f.col("kind"), f.col("status")
    is_append, is_delivery = kind == Kind.APPEND, kind == Kind.DELIVER
    acked = (kind == Kind.SEND_ACK) & (status == "SEND_OK")
    hashed = f.xxhash64("group")
    sums = rows.groupBy(message_key().alias("key")).agg(
        f.max("cell").alias("cell"),
        # Texts would turn the hash aggregation into a sort.
        f.max(f.when(~is_delivery, f.xxhash64("topic"))).alias("topic_key"),
        f.min(f.when(kind == Kind.SEND, f.col("ts"))).alias("send_ts"),
        f.min(f.when(acked, f.col("ts"))).alias("acked_ts"),
        f.min(f.when(is_append, f.col("ts"))).alias("stored_ts"),
        f.min(f.when(is_delivery, f.col("ts"))).alias("delivered_ts"),
        count(kind == Kind.SEND, "sends"),
        count(acked, "acked"),
        count((kind == Kind.SEND_ACK) & status.isin(*STORED_STATUSES[1:]), "soft_acked"),
        count((kind == Kind.SEND_FAIL) & (status == "unknown"), "unknown"),
        count((kind == Kind.SEND_FAIL) & (status != "unknown"), "refused"),
        count(is_append, "appends"),
        count(is_append & f.col("until_seq").isNotNull(), "at_risk"),
        count(is_append & (f.col("commit_offset") >= f.col("kept_end")), "cut"),
        count(is_append & (f.col("flush_mode") == "SYNC_FLUSH"), "sync_appends"),
        count(is_delivery, "deliveries"),
        f.coalesce(f.bit_xor(f.when(is_delivery, hashed)), f.lit(0)).alias("handed"),
    )
    owed = groups.select(
        f.xxhash64("subscribed_topic").alias("owed_topic"),
        f.size("subscribed").alias("owed"),
        f.aggregate(
            "subscribed", f.lit(0).cast("bigint"), lambda xor, group: xor.bitwiseXOR(f.xxhash64(group))
        ).alias("owed_xor"),
    )
    known = sums.join(f.broadcast(owed), f.col("topic_key") == f.col("owed_topic"), "left")
    once_each = (f.col("deliveries") == f.coalesce("owed", f.lit(0))) & (
        f.col("handed") == f.coalesce("owed_xor", f.lit(0))
    )
    nothing_owed = f.expr("acked + soft_acked = 0 AND deliveries = 0")
    # Delivered though never sent, or though its producer does not know: NoPhantom's to tell.
    known_sent = f.expr("deliveries = 0 OR (sends > 0 AND (acked + soft_acked > 0 OR unknown = 0))")
    clean = (f.col("cut") == 0) & known_sent & (once_each | nothing_owed)
    return known.withColumn("clean", clean).drop("topic_key", "handed", "owed_topic", "owed", "owed_xor")


def count(condition: Column, name: str) -> Column:
    # sum, not count_if: a null condition (a status that was not recorded) is no.
    return f.sum(f.when(condition, 1).otherwise(0)).alias(name)
