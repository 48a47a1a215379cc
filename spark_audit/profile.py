"""The first pass over an event log: a small table from which the rest is planned.

Counts and extents by node, kind, group and queue; and, one by one, the rare rows that are not traffic
(crashes, recoveries, rebalances, resets, failed consumption), carried along in the keys of the same
aggregation, so that they need no scan of their own.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_audit.schema import EVENTS
from spec.events import Kind

BROKER_KINDS: Final = (Kind.APPEND, Kind.FLUSH, Kind.DISPATCH, Kind.TRUNCATE, Kind.RECOVER)
"""Only a broker reports these: who does is one."""

RARE_KINDS: Final = (
    Kind.CRASH,
    Kind.RECOVER,
    Kind.TRUNCATE,
    Kind.BECOME_LEADER,
    Kind.REBALANCE,
    Kind.REGISTER,
    Kind.UNREGISTER,
    Kind.CONSUME_FAIL,
    Kind.RETRY,
)


@dataclass(frozen=True, slots=True)
class Overview:
    """What the log consists of."""

    rows: int
    by_kind: dict[str, int]
    nodes: tuple[str, ...]
    brokers: tuple[str, ...]
    first_ts: int
    last_ts: int
    missing_rows: int
    """Holes in the nodes' dense sequence numbers."""
    repeated_rows: int
    """Rows of one node that share a sequence number with another."""
    repeating_nodes: tuple[str, ...]


def profile(log: DataFrame) -> DataFrame:
    """One row a (kind, node, stated, group, topic, queue_id, placed), and one each of the rare rows.

    `stated` is attrs.broker, `placed` whether there is a queue_offset, `rare` the whole row as JSON.
    """
    rare = f.when(f.col("kind").isin(*RARE_KINDS) | is_reset(), f.to_json(f.struct(*EVENTS.fieldNames())))
    return log.groupBy(
        "kind",
        "node",
        f.col("attrs")["broker"].alias("stated"),
        "group",
        "topic",
        "queue_id",
        f.col("queue_offset").isNotNull().alias("placed"),
        rare.alias("rare"),
    ).agg(
        f.count(f.lit(1)).alias("rows"),
        f.min("seq").alias("seq_min"),
        f.max("seq").alias("seq_max"),
        f.min("ts").alias("first_ts"),
        f.max("ts").alias("last_ts"),
        f.min("queue_offset").alias("offset_min"),
        f.max("queue_offset").alias("offset_max"),
    )


def rare_rows(profiled: DataFrame) -> DataFrame:
    """The rare rows as they were."""
    rows = profiled.where("rare IS NOT NULL").select(f.from_json("rare", EVENTS).alias("row"), "rows")
    # Two rows alike in everything are one group of two.
    each = rows.select("row", f.explode(f.sequence(f.lit(1), f.col("rows").cast("int"))))
    return each.select("row.*")


def is_reset() -> Column:
    """An offset that somebody set on purpose."""
    return (f.col("kind") == Kind.OFFSET_COMMIT) & f.coalesce(f.col("attrs")["reset"] == "true", f.lit(False))


def overview(profiled: DataFrame) -> Overview:
    """Counts by node and kind, and how dense each node's sequence numbers are."""
    cells = (
        profiled.groupBy("node", "kind")
        .agg(
            f.sum("rows").alias("rows"),
            f.min("seq_min").alias("seq_min"),
            f.max("seq_max").alias("seq_max"),
            f.min("first_ts").alias("first_ts"),
            f.max("last_ts").alias("last_ts"),
        )
        .collect()
    )
    missing = repeated = 0
    repeating: list[str] = []
    nodes = sorted({cell.node for cell in cells})
    for node in nodes:
        own = [cell for cell in cells if cell.node == node]
        holes = max(c.seq_max for c in own) - min(c.seq_min for c in own) + 1 - sum(c.rows for c in own)
        missing += max(0, holes)
        repeated += max(0, -holes)
        repeating += [node] * (holes < 0)
    by_kind: Counter[str] = Counter()
    for cell in cells:
        by_kind[cell.kind] += cell.rows
    return Overview(
        rows=by_kind.total(),
        by_kind=dict(by_kind),
        nodes=tuple(nodes),
        brokers=tuple(sorted({cell.node for cell in cells if cell.kind in BROKER_KINDS})),
        first_ts=min((cell.first_ts for cell in cells), default=0),
        last_ts=max((cell.last_ts for cell in cells), default=0),
        missing_rows=missing,
        repeated_rows=repeated,
        repeating_nodes=tuple(repeating),
    )
