"""Fingerprints by which clean messages are known without a look at any one of them.

Messages fall into cells by their id. In a cell, what was sent, acknowledged, appended and handed to each
group is counted and summed up as hashes, of ids and of places. Where all these sums agree, every message of
the cell was sent, acknowledged and stored once, at one place, and handed from that place to every group of
its topic once: no check of messages has anything to find there. The rest, message by message, is sums.py's.

Rows of one message are always in one cell, so that a cell in doubt can be read again as a whole, without
asking first whose rows lie in it. Where ids count up, as RocketMQ's do, a cell is a hundred or so messages in
a row, by the beginning of their ids: then what a task reads in a while falls into few cells, whose sums stay
in the processor's cache and hardly need to be exchanged; and the share of cells in doubt does not grow with
the log. Of other ids the hash decides, and there is a fixed number of cells.

Cells of several producers are read, as one id may be of two of them, with every row there twice.

Cannot tell: one id that was sent twice as a first attempt by one producer, acknowledged, stored and delivered
twice as well (legal, and otherwise counted as `producer_retry`). Sums of different rows agree by chance once
in 2^32 cells.
"""

from collections import defaultdict
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.sums import KINDS, count, message_key
from spec.events import Kind

CELLS: Final = 1 << 16
"""Where ids do not count up: enough that a few thousand messages in trouble leave most cells clean; so few
that a task has them all in memory."""

CELL_MESSAGES: Final = 64
"""Where they do, a cell has so many or more."""
_SAMPLED_IDS: Final = 1 << 15

RETRY_TOPIC_PREFIX: Final = "%RETRY%"
"""A group's own topic of redelivered messages."""

_FROM_BROKER: Final = "acknowledged_by_broker"
_LOW_HALF: Final = 0xFFFFFFFF


def cell(id_prefix: int = 0) -> Column:
    """The cell of a row's message: by the first characters of its id, 0 for by its hash."""
    if id_prefix:
        return f.xxhash64(f.substring("msg_id", 1, id_prefix))
    return message_key().bitwiseAND(CELLS - 1)


def id_prefix(log: DataFrame) -> int:
    """How many characters of an id tell its cell: learned from the ids at the log's beginning. Runs a job.

    0 where no beginning of an id is shared by neighbours, and by them alone.
    """
    told = log.where((f.col("kind") == Kind.SEND) & f.col("msg_id").isNotNull()).select("msg_id")
    return shared_prefix([row["msg_id"] for row in told.limit(_SAMPLED_IDS).collect()])


def shared_prefix(ids: list[str]) -> int:
    """The longest beginning that CELL_MESSAGES of these ids share on average, all near to one another; else
    0."""
    for length in range(max(map(len, ids), default=0) - 1, 0, -1):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, msg_id in enumerate(ids):
            places[msg_id[:length]].append(at)
        if len(ids) < CELL_MESSAGES * len(places):
            continue
        span = sum(at[-1] - at[0] + 1 for at in places.values()) / len(places)
        return length if 4 * span <= len(ids) else 0
    return 0


def message_cells(
    rows: DataFrame, profiled: DataFrame, groups: DataFrame, fates: DataFrame, brokers: tuple[str, ...]
) -> DataFrame:
    """One row a cell: `clean`, and what the tallies count, which is right where it is clean.

    `rows` are events of sums.KINDS, with their `cell`; `profiled` is their log's profile; `groups` has
    subscribed_topic and the array subscribed; `fates` is evidence.fates.
    """
    # Keys and sums of fixed width: with texts in them, each row costs three times as much.
    seq, commit_offset = _of_append("seq"), _of_append("commit_offset")
    by_id = message_key()
    summed = rows.groupBy("cell", f.xxhash64("topic").alias("topic_key"), _role_key().alias("role_key")).agg(
        f.count(f.lit(1)).alias("rows"),
        f.sum(by_id.bitwiseAND(_LOW_HALF)).alias("id"),
        f.sum(f.xxhash64(by_id, "queue_id", "queue_offset").bitwiseAND(_LOW_HALF)).alias("place"),
        f.max(_is_odd()).alias("odd"),
        f.min(seq).alias("seq_min"),
        f.max(seq).alias("seq_max"),
        f.max(commit_offset).alias("commit_offset_max"),
    )
    # A log of one audience has a row a cell and role already; the rest is done on what little there is now.
    known = _add_fate(_add_owed(_add_role(summed, profiled, brokers), groups), fates)
    merged = known.groupBy("cell", "audience", "owed", "role", "group").agg(
        *[f.sum(name).alias(name) for name in ("rows", "id", "place", "at_risk")],
        f.max("odd").alias("odd"),
        *_least_and_most(f.when(f.col("role") == Kind.SEND, f.col("role_key")), "producer"),
    )
    compared = f.col("kind").isin(Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    expected = profiled.where(compared).agg(f.countDistinct(_role(brokers)).alias("roles_expected"))
    return _judged(merged, expected)


def _of_append(name: str) -> Column:
    return f.when(f.col("kind") == Kind.APPEND, f.col(name))


def _role_key() -> Column:
    """A hash of whose word it is: of a group's consumers, or of one node's."""
    told_by = f.when(f.col("kind") == Kind.DELIVER, f.col("group")).when(
        f.col("kind").isin(Kind.SEND, Kind.APPEND, Kind.SEND_ACK), f.col("node")
    )
    return f.xxhash64("kind", told_by)


def _role(brokers: tuple[str, ...]) -> Column:
    """Whose word it is: a broker that reports its acknowledgements does so beside the producers."""
    from_broker = (f.col("kind") == Kind.SEND_ACK) & f.col("node").isin(*brokers)
    return f.when(from_broker, f.lit(_FROM_BROKER)).otherwise(f.col("kind"))


def _add_role(summed: DataFrame, profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    """Put role, group and, of appends, the node in place of their hash."""
    roles = profiled.where(f.col("kind").isin(*KINDS)).select(
        _role_key().alias("role_key"),
        _role(brokers).alias("role"),
        f.when(f.col("kind") == Kind.DELIVER, f.col("group")).alias("group"),
        _of_append("node").alias("appended_by"),
    )
    return summed.join(f.broadcast(roles.distinct()), "role_key")


def _is_odd() -> Column:
    """Rows that always call for a look: retries, failures, weak acknowledgements, what says too little."""
    kind, status = f.col("kind"), f.col("status")
    weak = (kind == Kind.SEND_ACK) & ~(f.coalesce(status, f.lit("")) == "SEND_OK")
    nameless = f.col("topic").isNull() | (
        (kind == Kind.DELIVER) & (f.col("group").isNull() | f.col("queue_offset").isNull())
    )
    again = f.coalesce(f.col("attempt") > 1, f.lit(False)) | f.col("topic").startswith(RETRY_TOPIC_PREFIX)
    return (kind == Kind.SEND_FAIL) | weak | nameless | again


def _add_fate(summed: DataFrame, fates: DataFrame) -> DataFrame:
    """Add `at_risk`, and make `odd` what a recovery may have cut off.

    Appends of a cell that are not all on one side of a recovery are looked at one by one.
    """
    met = fates.select(
        f.col("cut_node").alias("appended_by"),
        f.struct("after_seq", "until_seq", "kept_end", "flush_mode").alias("fate"),
    )
    by_node = met.groupBy("appended_by").agg(f.collect_list("fate").alias("fates"))
    known = summed.join(f.broadcast(by_node), "appended_by", "left")
    touches = "fate.after_seq < seq_max AND seq_min < fate.until_seq"
    encloses = "fate.after_seq < seq_min AND seq_max < fate.until_seq"
    known = known.withColumn("fate", f.expr(f"get(filter(fates, fate -> {encloses}), 0)")).withColumn(
        "touched", f.coalesce(f.expr(f"exists(fates, fate -> {touches})"), f.lit(False))
    )
    cut_off = f.expr("touched AND (fate IS NULL OR commit_offset_max >= fate.kept_end)")
    is_sync = f.expr("fate.flush_mode = 'SYNC_FLUSH'")
    return known.withColumn("odd", f.col("odd") | f.coalesce(cut_off, f.lit(False))).withColumn(
        "at_risk", f.when(is_sync, f.col("rows")).otherwise(0)
    )


def _add_owed(summed: DataFrame, groups: DataFrame) -> DataFrame:
    """Add `owed`, how many groups read the topic, and `audience`, which: topics with one audience share
    sums."""
    owed = groups.select(
        f.xxhash64("subscribed_topic").alias("topic_key"),
        f.size("subscribed").alias("owed"),
        f.xxhash64(f.array_sort("subscribed")).alias("audience"),
    )
    known = summed.join(f.broadcast(owed), "topic_key", "left")
    return known.withColumn("owed", f.coalesce("owed", f.lit(0)))


def _judged(summed: DataFrame, expected: DataFrame) -> DataFrame:
    """A cell is clean when, for each audience, there is one row a role and group, and all are the same."""
    is_delivery, is_send = f.col("role") == Kind.DELIVER, f.col("role") == Kind.SEND
    # A send knows no place yet.
    compared = {"rows": f.col("rows"), "id": f.col("id"), "place": f.when(~is_send, f.col("place"))}
    audiences = summed.groupBy("cell", "audience", "owed").agg(
        count(~is_delivery, "roles"),
        count(is_send, "producers"),
        count(is_delivery, "groups"),
        count(f.col("role").isin(Kind.SEND_ACK, _FROM_BROKER), "acks"),
        *[column for name, value in compared.items() for column in _least_and_most(value, name)],
        f.max("odd").alias("odd"),
        f.sum("at_risk").alias("at_risk"),
        f.min("producer_min").alias("producer_min"),
        f.max("producer_max").alias("producer_max"),
    )
    same = f.lit(True)
    for name in compared:
        same = same & f.col(f"{name}_min").eqNullSafe(f.col(f"{name}_max"))
    whole = f.expr("producers = 1 AND roles = roles_expected AND groups = owed AND NOT odd")
    told = audiences.crossJoin(f.broadcast(expected)).withColumn("clean", whole & same)
    return told.groupBy("cell").agg(
        # One id may have been sent to two topics, of different audiences.
        (f.min("clean") & (f.min("producer_min") == f.max("producer_max"))).alias("clean"),
        f.sum("rows_max").alias("messages"),
        _sum_where("owed > 0", "rows_max", "messages_delivered"),
        _sum_where("acks > 0", "rows_max", "acked"),
        _sum_where("acks > 0 AND owed > 0", "rows_max", "acked_and_delivered"),
        _sum_where("acks > 0", "at_risk", "acked_sync_at_risk"),
    )


def _least_and_most(value: Column, name: str) -> tuple[Column, Column]:
    return f.min(value).alias(f"{name}_min"), f.max(value).alias(f"{name}_max")


def _sum_where(condition: str, value: str, name: str) -> Column:
    return f.sum(f.when(f.expr(condition), f.col(value)).otherwise(0)).alias(name)
