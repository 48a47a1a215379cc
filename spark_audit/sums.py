"""What happened to each message, in numbers only, keyed by a hash: tells which need a look one by one.

Clean is a message that was delivered exactly once to each group of its topic, or that nobody owes anything:
no check can find anything about it, not even something explained. The checks' own sums, with places and
groups as they are, are then made of the few others.

Each group has a hash; as many deliveries as groups, with the groups' hashes as their exclusive or, are one to
each: anything else would need an even number for some group. Two messages whose ids have one 64-bit hash are
taken for one, which then has twice of everything, and is looked at.

A task sums up what its share has of a message, but keeps its appends apart: Spark, which adds the sums up,
knows what became of each at its broker.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spark_audit.share import quoted
from spec.events import Kind

KINDS: Final = (Kind.SEND, Kind.SEND_ACK, Kind.SEND_FAIL, Kind.APPEND, Kind.DELIVER)
"""What happens to a message by its id."""


STORED_STATUSES: Final = ("SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")

_SEND, _ACK, _FAIL, _APPEND, _DELIVER = (f"kind = '{kind}'" for kind in KINDS)
_OK: Final = f"{_ACK} AND status = 'SEND_OK'"
_FIRST: Final = {"send_ts": _SEND, "acked_ts": _OK, "stored_ts": _APPEND, "delivered_ts": _DELIVER}
"""A time to the rows of which it is the first."""
_COUNTS: Final = {
    "sends": _SEND,
    "acked": _OK,
    "soft_acked": f"{_ACK} AND status IN ({quoted(*STORED_STATUSES[1:])})",
    "unknown": f"{_FAIL} AND status = 'unknown'",
    "refused": f"{_FAIL} AND status <> 'unknown'",
    "appends": _APPEND,
    "deliveries": _DELIVER,
}
"""A count to the rows that it counts."""

_OF_APPEND: Final = ("kind", "node", "seq", "commit_offset")

_HASH: Final = '(hash("group") >> 1)::BIGINT'
GROUPS: Final = f"""
SELECT 'group' AS part, "group", {_HASH} AS id FROM log WHERE {_DELIVER} AND "group" IS NOT NULL GROUP BY ALL
"""
"""Of a share, in the pass over the log: the hash of each group."""

SUMS: Final = t.StructType(
    [
        *[t.StructField(name, t.StringType()) for name in ("msg_id", "cell", "topic", "kind", "node")],
        *[
            t.StructField(name, t.LongType())
            for name in ("seq", "commit_offset", *_FIRST, *_COUNTS, "handed")
        ],
    ]
)
"""What `query` yields."""


def is_of_message() -> str:
    """Of a row, in Spark's SQL and in DuckDB's: it says what happened to a message."""
    return f"msg_id IS NOT NULL AND kind IN ({quoted(*KINDS)})"


def query(cell: str) -> str:
    """Of a share: a row a message, with its `cell`, and if it has one append that one's kind, node, seq and
    commit_offset. Of several, each is a row of its own."""
    sums = [
        *(f"min(ts) FILTER ({rows}) AS {name}" for name, rows in _FIRST.items()),
        *(f"count(*) FILTER ({rows}) AS {name}" for name, rows in _COUNTS.items()),
        *(f"min({name}) FILTER ({_APPEND}) AS {name}" for name in _OF_APPEND),
        f"bit_xor({_HASH}) FILTER ({_DELIVER}) AS handed",
    ]
    own = ", ".join(f"CASE WHEN appends = 1 THEN {name} END AS {name}" for name in _OF_APPEND)
    return f"""
WITH told AS MATERIALIZED (
    SELECT msg_id, {cell} AS cell, max(topic) FILTER (kind <> '{Kind.DELIVER}') AS topic, {", ".join(sums)}
    FROM log WHERE {is_of_message()} GROUP BY ALL
), several AS (
    SELECT msg_id FROM told WHERE appends > 1
)
SELECT * EXCLUDE (appends, {", ".join(_OF_APPEND)}), CASE WHEN appends = 1 THEN 1 ELSE 0 END AS appends, {own}
FROM told
UNION ALL BY NAME
SELECT msg_id, {cell} AS cell, 1 AS appends, {", ".join(_OF_APPEND)}
FROM log WHERE {_APPEND} AND msg_id IN (FROM several)"""


def message_key() -> Column:
    return f.xxhash64("msg_id")


def message_sums(parts: DataFrame, groups: DataFrame, hashes: DataFrame) -> DataFrame:
    """One row a message: key, cell, what the tallies count, and `clean`.

    `parts` is what `query` yields, with the columns that evidence.on_broker adds; `groups` has
    subscribed_topic and the array subscribed; `hashes` what GROUPS yields.
    """
    is_cut = f.col("commit_offset") >= f.col("kept_end")
    sums = parts.groupBy(message_key().alias("key")).agg(
        # Texts would turn the hash aggregation into a sort.
        f.max(f.xxhash64("cell")).alias("cell"),
        f.max(f.when(f.col("topic").isNotNull(), f.xxhash64("topic"))).alias("topic_key"),
        *[f.min(name).alias(name) for name in _FIRST],
        *[f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in _COUNTS],
        _sum_of_appends(f.col("until_seq").isNotNull(), "at_risk"),
        _sum_of_appends(is_cut, "cut"),
        _sum_of_appends(f.col("flush_mode") == "SYNC_FLUSH", "sync_appends"),
        f.coalesce(f.bit_xor("handed"), f.lit(0)).alias("handed"),
    )
    known = sums.join(f.broadcast(_owed(groups, hashes)), f.col("topic_key") == f.col("owed_topic"), "left")
    once_each = (f.col("deliveries") == f.coalesce("owed", f.lit(0))) & (
        f.col("handed") == f.coalesce("owed_xor", f.lit(0))
    )
    nothing_owed = f.expr("acked + soft_acked = 0 AND deliveries = 0")
    # Delivered though never sent, or though its producer does not know: NoPhantom's to tell.
    known_sent = f.expr("deliveries = 0 OR (sends > 0 AND (acked + soft_acked > 0 OR unknown = 0))")
    clean = (f.col("cut") == 0) & known_sent & (once_each | nothing_owed)
    return known.withColumn("clean", clean).drop("topic_key", "handed", "owed_topic", "owed", "owed_xor")


def _owed(groups: DataFrame, hashes: DataFrame) -> DataFrame:
    """owed_topic, how many groups are `owed` its messages, and their hashes' exclusive or."""
    each = groups.select(f.xxhash64("subscribed_topic").alias("owed_topic"), f.explode("subscribed"))
    # What was handed to nobody in this log was not handed to a group whose hash it does not tell.
    told = hashes.select(f.col("group").alias("told"), "id").distinct()
    known = each.join(f.broadcast(told), f.col("col") == f.col("told"), "left")
    return known.groupBy("owed_topic").agg(f.count("col").alias("owed"), f.bit_xor("id").alias("owed_xor"))


def _sum_of_appends(condition: Column, name: str) -> Column:
    return f.sum(f.when(condition, f.col("appends")).otherwise(0)).alias(name)


def count(condition: Column, name: str) -> Column:
    # sum, not count_if: a null condition (a status that was not recorded) is no.
    return f.sum(f.when(condition, 1).otherwise(0)).alias(name)
