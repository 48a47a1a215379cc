"""The profile of an event log: a small table from which the rest of the audit is planned.

It has counts and extents by node, kind, group and queue. It also has each of the rare rows that are not
traffic: crashes, recoveries, rebalances, resets, failed consumption. The rare rows are part of the keys of
the same aggregation, so they need no pass of their own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.schema import EVENT_COLUMNS
from mqproof.spec.events import COLUMNS, Kind

BROKER_KINDS: Final = (Kind.APPEND, Kind.FLUSH, Kind.DISPATCH, Kind.TRUNCATE, Kind.RECOVER)
"""Kinds that only brokers report; RECOVER is also reported by name servers when they start."""

_OF_NAME_SERVERS: Final = (Kind.REGISTER, Kind.UNREGISTER, Kind.EXPIRE, Kind.ROUTE)
_WRITTEN_BY_NAME_SERVERS: Final = frozenset((*_OF_NAME_SERVERS, Kind.HEARTBEAT, Kind.RECOVER))

RARE_KINDS: Final = (
    Kind.CRASH,
    Kind.RECOVER,
    Kind.TRUNCATE,
    Kind.BECOME_LEADER,
    Kind.REBALANCE,
    Kind.SUBSCRIBE,
    Kind.UNSUBSCRIBE,
    Kind.ADMIN,
    Kind.GAP,
    Kind.REGISTER,
    Kind.UNREGISTER,
    Kind.CONSUME_FAIL,
    Kind.RETRY,
    Kind.DEAD_LETTER,
)


@dataclass(frozen=True, slots=True)
class Overview:
    """Summary of a log's contents."""

    rows: int
    by_kind: dict[str, int]
    nodes: tuple[str, ...]
    brokers: tuple[str, ...]
    first_ts: int
    last_ts: int
    missing_rows: int
    """How many sequence numbers no row has; the numbers of a node are consecutive."""
    repeated_rows: int
    """Rows that share a sequence number with another row of the same node."""
    repeating_nodes: tuple[str, ...]
    holed_nodes: tuple[str, ...] = ()
    """Nodes with missing rows, those with the most first."""
    begun_late: tuple[tuple[str, int], ...] = ()
    """Nodes without their first rows, and the number of these rows; the node that begins latest is first."""
    complete_from: int | None = None
    """The time from which the log of each node is complete; None if it has the first row of each node."""
    newer_rows: int = 0
    """Rows of a newer schema version than ours: they are not treated as events and are counted nowhere else.
    """


KEYS: Final = ("kind", "node", "stated", "group", "topic", "queue_id")
EXTENTS: Final = {
    "seq": ("seq_min", "seq_max"), "ts": ("first_ts", "last_ts"), "queue_offset": ("offset_min", "offset_max")
}  # fmt: skip
"""Maps a column to the names of its minimum and maximum."""
_MERGED: Final = {
    "rows": "sum", "seq_min": "min", "seq_max": "max", "first_ts": "min", "last_ts": "max",
    "offset_min": "min", "offset_max": "max",
}  # fmt: skip
"""Maps a column to the function that merges it."""


def profiled_rows(log: DataFrame) -> DataFrame:
    """Return the profile of a log with the columns `stated` and `reset`, as summed_up does, in one query."""
    is_rare = f.col("kind").isin(*RARE_KINDS) | f.col("reset")
    rare = f.when(is_rare, f.to_json(f.struct(*COLUMNS))).alias("rare")
    extents = [
        column
        for name, (low, high) in EXTENTS.items()
        for column in (f.min(name).alias(low), f.max(name).alias(high))
    ]
    placed = f.col("queue_offset").isNotNull().alias("placed")
    return log.groupBy(*KEYS, placed, rare).agg(f.count(f.lit(1)).alias("rows"), *extents)


def summed_up(parts: DataFrame) -> DataFrame:
    """Return one row per (kind, node, stated, group, topic, queue_id, placed), and one per rare row.

    `stated` is attrs.broker, `placed` is whether there is a queue_offset, `rare` is the whole row as JSON.
    """
    return merged(parts.where("part = 'profile'"))


def merged(profiles: DataFrame) -> DataFrame:
    """Merge the profiles of several splits, or of several runs."""
    return profiles.groupBy(*KEYS, "placed", "rare").agg(
        *[getattr(f, merge)(name).alias(name) for name, merge in _MERGED.items()]
    )


def rare_rows(profiled: DataFrame) -> DataFrame:
    """Return the rare rows in their original form."""
    types = ", ".join(f"{name} {kind}" for name, kind in EVENT_COLUMNS.items())
    rows = profiled.where("rare IS NOT NULL").select(f.from_json("rare", types).alias("row"), "rows")
    # Two identical rows are one group with rows = 2.
    each = rows.select("row", f.explode(f.sequence(f.lit(1), f.col("rows").cast("int"))))
    return each.select("row.*")


def is_reset() -> Column:
    """Return the condition for a commit that sets an offset explicitly (a reset)."""
    return (f.col("kind") == Kind.OFFSET_COMMIT) & f.coalesce(f.col("attrs")["reset"] == "true", f.lit(False))


def overview(profiled: DataFrame) -> Overview:
    """Return counts by node and kind, and how dense each node's sequence numbers are."""
    counted = (
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
    newer = sum(row.rows for row in counted if row.kind is None)
    counted = [row for row in counted if row.kind is not None]
    nodes = sorted({row.node for row in counted})
    holes: dict[str, int] = {}
    for node in nodes:
        own = [row for row in counted if row.node == node]
        numbers = max(row.seq_max for row in own) - min(row.seq_min for row in own) + 1
        holes[node] = numbers - sum(row.rows for row in own)
    holed = [node for node in nodes if holes[node] > 0]
    repeating = [node for node in nodes if holes[node] < 0]
    by_kind: Counter[str] = Counter()
    for row in counted:
        by_kind[row.kind] += row.rows
    begins = _late_begins(counted)
    return Overview(
        rows=by_kind.total(),
        by_kind=dict(by_kind),
        nodes=tuple(nodes),
        brokers=_brokers({(row.node, row.kind) for row in counted}),
        first_ts=min((row.first_ts for row in counted), default=0),
        last_ts=max((row.last_ts for row in counted), default=0),
        missing_rows=sum(holes[node] for node in holed),
        repeated_rows=-sum(holes[node] for node in repeating),
        repeating_nodes=tuple(repeating),
        holed_nodes=tuple(sorted(holed, key=lambda node: -holes[node])),
        begun_late=tuple((node, number) for _, node, number in begins),
        complete_from=max((begin for begin, _, _ in begins), default=None),
        newer_rows=newer,
    )


def _late_begins(counted: Sequence[Any]) -> list[tuple[int, str, int]]:
    """Return the start time, name and first number of each node whose first rows are not in the log.

    Name servers do not count: their checks begin with a start that is in the log.
    """
    late = []
    for node in sorted({row.node for row in counted}):
        own = [row for row in counted if row.node == node]
        number = min(row.seq_min for row in own)
        if number > 0 and not {row.kind for row in own} <= _WRITTEN_BY_NAME_SERVERS:
            late.append((min(row.first_ts for row in own), node, number))
    return sorted(late, reverse=True)


def _brokers(nodes: set[tuple[str, str]]) -> tuple[str, ...]:
    """Return the brokers, given (node, kind) pairs."""
    stores = {node for node, kind in nodes if kind in BROKER_KINDS and kind != Kind.RECOVER}
    started = {node for node, kind in nodes if kind == Kind.RECOVER}
    name_servers = {node for node, kind in nodes if kind in _OF_NAME_SERVERS}
    return tuple(sorted(stores | (started - name_servers)))
