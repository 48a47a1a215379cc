"""Fingerprints by which clean messages are known without a look at any one of them.

Messages fall into cells by a hash of their id. In a cell, what was sent, acknowledged, appended and handed to
each group is counted and summed up as hashes, of ids and of places. Where all these sums agree, every message
of the cell was sent, acknowledged and stored once, at one place, and handed from that place to every group of
its topic once: no check of messages has anything to find there. The rest, message by message, is sums.py's.

The table of cells does not grow with the log, and rows of one message are always in one cell, so that a cell
in doubt can be read again as a whole, without asking first whose rows lie in it.
Cannot tell: one id that was sent twice as a first attempt, acknowledged, stored and delivered twice as well
(legal, and otherwise counted as `producer_retry`). Sums of different rows agree by chance once in 2^64 cells.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.sums import count, message_key
from spec.events import Kind

CELLS: Final = 1 << 16
"""Enough that a few thousand messages in trouble leave most cells clean; so few that a task has them all in
memory."""

RETRY_TOPIC_PREFIX: Final = "%RETRY%"
"""A group's own topic of redelivered messages."""

_FROM_BROKER: Final = "acknowledged_by_broker"
_LOW_HALF: Final = 0xFFFFFFFF


def cell() -> Column:
    """The cell of a row's message."""
    return message_key().bitwiseAND(CELLS - 1)


def message_cells(
    rows: DataFrame, profiled: DataFrame, groups: DataFrame, fates: DataFrame, brokers: tuple[str, ...]
) -> DataFrame:
    """One row a cell: `clean`, and what the tallies count, which is right where it is clean.

    `rows` are events of sums.KINDS, `profiled` is their log's profile; `groups` has subscribed_topic and the
    array subscribed; `fates` is evidence.fates.
    """
    kind, role = f.col("kind"), _role(brokers)
    summed = _add_owed(_add_fate(rows, fates), groups)
    by_id = message_key()
    by_place = f.xxhash64(by_id, "queue_id", "queue_offset")
    is_append = kind == Kind.APPEND
    summed = summed.groupBy(
        cell().alias("cell"),
        "audience",
        "owed",
        role.alias("role"),
        f.when(kind == Kind.DELIVER, f.col("group")).alias("group"),
    ).agg(
        f.count(f.lit(1)).alias("rows"),
        *_halves(by_id, "id"),
        *_halves(by_place, "place"),
        count(_is_odd(), "odd"),
        count(is_append & (f.col("commit_offset") >= f.col("kept_end")), "cut"),
        count(is_append & f.col("until_seq").isNotNull() & (f.col("flush_mode") == "SYNC_FLUSH"), "at_risk"),
    )
    compared = f.col("kind").isin(Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    expected = profiled.where(compared).agg(f.countDistinct(role).alias("roles_expected"))
    return _judged(summed, expected)


def _role(brokers: tuple[str, ...]) -> Column:
    """Whose word it is: a broker that reports its acknowledgements does so beside the producers."""
    from_broker = (f.col("kind") == Kind.SEND_ACK) & f.col("node").isin(*brokers)
    return f.when(from_broker, f.lit(_FROM_BROKER)).otherwise(f.col("kind"))


def _halves(hashed: Column, name: str) -> list[Column]:
    """Sums of both halves of a hash: they cannot overflow, and what occurs twice is not cancelled out."""
    return [
        f.sum(f.shiftright(hashed, 32)).alias(f"{name}_high"),
        f.sum(hashed.bitwiseAND(_LOW_HALF)).alias(f"{name}_low"),
    ]


def _is_odd() -> Column:
    """Rows that always call for a look: retries, failures, weak acknowledgements, what says too little."""
    kind, status = f.col("kind"), f.col("status")
    weak = (kind == Kind.SEND_ACK) & ~(f.coalesce(status, f.lit("")) == "SEND_OK")
    nameless = f.col("topic").isNull() | (
        (kind == Kind.DELIVER) & (f.col("group").isNull() | f.col("queue_offset").isNull())
    )
    again = f.coalesce(f.col("attempt") > 1, f.lit(False)) | f.col("topic").startswith(RETRY_TOPIC_PREFIX)
    return (kind == Kind.SEND_FAIL) | weak | nameless | again


def _add_fate(rows: DataFrame, fates: DataFrame) -> DataFrame:
    met = (
        (f.when(f.col("kind") == Kind.APPEND, f.col("node")) == f.col("cut_node"))
        & (f.col("seq") > f.col("after_seq"))
        & (f.col("seq") < f.col("until_seq"))
    )
    return rows.join(f.broadcast(fates), met, "left")


def _add_owed(rows: DataFrame, groups: DataFrame) -> DataFrame:
    """Add `owed`, how many groups read the topic, and `audience`, which: topics with one audience share
    sums."""
    owed = groups.select(
        f.col("subscribed_topic").alias("owed_topic"),
        f.size("subscribed").alias("owed"),
        f.xxhash64(f.array_sort("subscribed")).alias("audience"),
    )
    known = rows.join(f.broadcast(owed), f.col("topic") == f.col("owed_topic"), "left")
    return known.withColumn("owed", f.coalesce("owed", f.lit(0)))


def _judged(summed: DataFrame, expected: DataFrame) -> DataFrame:
    """A cell is clean when, for each audience, there is one row a role and group, and all are the same."""
    is_delivery, is_send = f.col("role") == Kind.DELIVER, f.col("role") == Kind.SEND
    names = ("rows", "id_high", "id_low", "place_high", "place_low")
    # A send knows no place yet.
    compared = {name: f.when(~is_send | f.lit(not name.startswith("place")), f.col(name)) for name in names}
    audiences = summed.groupBy("cell", "audience", "owed").agg(
        count(~is_delivery, "roles"),
        count(is_send, "producers"),
        count(is_delivery, "groups"),
        count(f.col("role").isin(Kind.SEND_ACK, _FROM_BROKER), "acks"),
        *[f.min(value).alias(f"{name}_min") for name, value in compared.items()],
        *[f.max(value).alias(f"{name}_max") for name, value in compared.items()],
        *[f.sum(name).alias(name) for name in ("odd", "cut", "at_risk")],
    )
    same = f.lit(True)
    for name in names:
        same = same & f.col(f"{name}_min").eqNullSafe(f.col(f"{name}_max"))
    whole = f.expr("producers = 1 AND roles = roles_expected AND groups = owed AND odd = 0 AND cut = 0")
    told = audiences.crossJoin(f.broadcast(expected)).withColumn("clean", whole & same)
    return told.groupBy("cell").agg(
        f.min("clean").alias("clean"),
        f.sum("rows_max").alias("messages"),
        _sum_where("owed > 0", "rows_max", "messages_delivered"),
        _sum_where("acks > 0", "rows_max", "acked"),
        _sum_where("acks > 0 AND owed > 0", "rows_max", "acked_and_delivered"),
        _sum_where("acks > 0", "at_risk", "acked_sync_at_risk"),
    )


def _sum_where(condition: str, value: str, name: str) -> Column:
    return f.sum(f.when(f.expr(condition), f.col(value)).otherwise(0)).alias(name)
