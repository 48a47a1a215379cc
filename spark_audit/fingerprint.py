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

from spark_audit.sums import count, is_of_message
from spec.events import Kind

_HASH_DIGITS: Final = 4
"""Where ids do not count up there are 65,536 cells: enough that a few thousand messages in trouble leave most
of them clean; so few that a task has them all in memory."""

CELL_MESSAGES: Final = 64
"""Where they do, a cell has so many or more."""
_SAMPLED_IDS: Final = 1 << 15

RETRY_TOPIC_PREFIX: Final = "%RETRY%"
"""A group's own topic of redelivered messages."""

_FROM_BROKER: Final = "acknowledged_by_broker"
_LOW_HALF: Final = 0xFFFFFFFF

_IS_ODD: Final = f"""(
    kind = '{Kind.SEND_FAIL}' OR (kind = '{Kind.SEND_ACK}' AND status IS DISTINCT FROM 'SEND_OK')
    OR topic IS NULL OR starts_with(topic, '{RETRY_TOPIC_PREFIX}') OR coalesce(attempt > 1, false)
    OR (kind = '{Kind.DELIVER}' AND ("group" IS NULL OR queue_offset IS NULL)))"""
"""Rows that always call for a look: retries, failures, weak acknowledgements, what says too little."""


def cell_text(id_prefix: int = 0) -> str:
    """The cell of a row's message, in Spark's SQL and in DuckDB's: the first characters of its id, 0 for its
    hash."""
    return f"substring(msg_id, 1, {id_prefix})" if id_prefix else f"substring(md5(msg_id), 1, {_HASH_DIGITS})"


def cell(id_prefix: int = 0) -> Column:
    """The cell as a number, which costs Spark less."""
    return f.xxhash64(f.expr(cell_text(id_prefix)))


def query(id_prefix: int) -> str:
    """Of a share, for the pass over the log: one row a (cell, topic, role)."""
    return f"""
SELECT 'cell' AS part, {cell_text(id_prefix)} AS cell, topic, kind,
    CASE WHEN kind <> '{Kind.DELIVER}' THEN node END AS node,
    CASE WHEN kind = '{Kind.DELIVER}' THEN "group" END AS "group",
    count(*) AS rows,
    sum((hash(msg_id) & {_LOW_HALF})::BIGINT)::BIGINT AS id,
    sum((hash(msg_id, queue_id, queue_offset) & {_LOW_HALF})::BIGINT)::BIGINT AS place,
    bool_or({_IS_ODD}) AS odd,
    min(seq) FILTER (kind = '{Kind.APPEND}') AS seq_min,
    max(seq) FILTER (kind = '{Kind.APPEND}') AS seq_max,
    max(commit_offset) FILTER (kind = '{Kind.APPEND}') AS commit_offset_max
FROM log WHERE {is_of_message()} GROUP BY ALL
"""


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
    parts: DataFrame, profiled: DataFrame, groups: DataFrame, fates: DataFrame, brokers: tuple[str, ...]
) -> DataFrame:
    """One row a cell: its `text`, `clean`, and what the tallies count, which is right where it is clean.

    `parts` is what `query` yields of the shares; `profiled` is their log's profile; `groups` has
    subscribed_topic and the array subscribed; `fates` is evidence.fates.
    """
    role = _role(brokers)
    summed = parts.where("part = 'cell'").withColumnRenamed("cell", "text").withColumn("role", role)
    known = _add_fate(_add_owed(summed, groups), fates)
    merged = known.groupBy("text", "audience", "owed", "role", "group").agg(
        *[f.sum(name).alias(name) for name in ("rows", "id", "place", "at_risk")],
        f.max("odd").alias("odd"),
        # A text would turn the hash aggregation into a sort.
        *_least_and_most(f.when(f.col("role") == Kind.SEND, f.xxhash64("node")), "producer"),
    )
    compared = f.col("kind").isin(Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    expected = profiled.where(compared).agg(f.countDistinct(role).alias("roles_expected"))
    return _judged(merged, expected).withColumn("cell", f.xxhash64("text"))


def _role(brokers: tuple[str, ...]) -> Column:
    """Whose word it is: a broker that reports its acknowledgements does so beside the producers."""
    from_broker = (f.col("kind") == Kind.SEND_ACK) & f.col("node").isin(*brokers)
    return f.when(from_broker, f.lit(_FROM_BROKER)).otherwise(f.col("kind"))


def _add_fate(summed: DataFrame, fates: DataFrame) -> DataFrame:
    """Add `at_risk`, and make `odd` what a recovery may have cut off.

    Appends of a cell that are not all on one side of a recovery are looked at one by one.
    """
    met = fates.select(
        f.col("cut_node").alias("cut_off_at"),
        f.struct("after_seq", "until_seq", "kept_end", "flush_mode").alias("fate"),
    )
    by_node = met.groupBy("cut_off_at").agg(f.collect_list("fate").alias("fates"))
    at_node = (f.col("kind") == Kind.APPEND) & (f.col("node") == f.col("cut_off_at"))
    known = summed.join(f.broadcast(by_node), at_node, "left")
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
        "subscribed_topic",
        f.size("subscribed").alias("owed"),
        f.xxhash64(f.array_sort("subscribed")).alias("audience"),
    )
    known = summed.join(f.broadcast(owed), f.col("topic") == f.col("subscribed_topic"), "left")
    return known.withColumn("owed", f.coalesce("owed", f.lit(0)))


def _judged(summed: DataFrame, expected: DataFrame) -> DataFrame:
    """A cell is clean when, for each audience, there is one row a role and group, and all are the same."""
    is_delivery, is_send = f.col("role") == Kind.DELIVER, f.col("role") == Kind.SEND
    # A send knows no place yet.
    compared = {"rows": f.col("rows"), "id": f.col("id"), "place": f.when(~is_send, f.col("place"))}
    audiences = summed.groupBy("text", "audience", "owed").agg(
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
    return told.groupBy("text").agg(
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
