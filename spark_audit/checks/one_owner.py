"""DELIV-6 OneOwner: in cluster mode a queue has one owner in a group, outside rebalance windows.

Owners change when the group rebalances, a member starts or ends, or the broker crashes. From one such change
to the next, but for the rebalance window around each, a queue is handed to one node only. Looked at are
queues whose nodes' deliveries overlap in time; what overlaps by no more than the clock skew proves nothing,
and neither does anything in groups that tell of no rebalance at all (cause `rebalance_not_told`).
Cannot conclude: who owns a queue of which nothing is handed out; whether a queue has no owner for too long.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_audit.checks.check import Check, counted, findings
from spark_audit.evidence import Evidence
from spec.events import Kind

INVARIANT: Final = "DELIV-6"
RULE: Final = "double-owned"

_QUEUE: Final = ("group", "broker", "topic", "queue_id")
_BY: Final = {"rebalance": "group", "consumer_restart": "node", "broker_crash": "broker"}
"""What changes owners, and of what it is told."""


def one_owner(evidence: Evidence) -> DataFrame:
    skew = evidence.options.skew_us
    # By client first: a text's maximum over every row would have all of them sorted.
    by_client = (
        _calm(evidence)
        .groupBy(*_QUEUE, "rebalances", "span", "node", "client")
        .agg(f.min("ts").alias("first_ts"), f.max("ts").alias("last_ts"))
    )
    owned = by_client.groupBy(*_QUEUE, "rebalances", "span", "node").agg(
        f.min("first_ts").alias("first_ts"),
        f.max("last_ts").alias("last_ts"),
        f.max("client").alias("client"),
    )
    by_begin = Window.partitionBy(*_QUEUE, "span").orderBy("first_ts", "node")
    before = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    reach = f.max(f.struct("last_ts", "node")).over(before)
    overlaps = owned.withColumn("other", reach).where(f.col("other.last_ts") > f.col("first_ts") + skew)
    return findings(
        overlaps,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        cause=f.when(f.coalesce("rebalances", f.lit(0)) == 0, f.lit("rebalance_not_told")),
        evidence=f.format_string("handed to %s, too, which had it before and after", "other.node"),
    )


def turns(evidence: Evidence, watermark: int) -> DataFrame:
    """node and seq of the rows by which what follows is judged, where nothing before the watermark is to
    come: the first and the last that each node was handed of a shared queue since owners changed."""
    # Without any change all is one turn.
    begun = f.size(f.filter("changes", lambda at: at < watermark))
    is_open = f.col("changes").isNull() | (f.col("span") >= begun)
    ends = [extreme("seq", "ts") for extreme in (f.min_by, f.max_by)]
    rows = _calm(evidence).where(is_open).groupBy(*_QUEUE, "span", "node").agg(f.array(*ends).alias("ends"))
    return rows.select("node", f.explode(f.array_distinct("ends")).alias("seq"))


def _calm(evidence: Evidence) -> DataFrame:
    """What was handed out of shared queues while no owners changed; `span` counts the changes until then."""
    window = evidence.options.rebalance_us
    handed = evidence.events.where(f.col("kind") == Kind.DELIVER)
    handed = handed.join(f.broadcast(shared_queues(evidence)), list(_QUEUE), "left_semi")
    known = handed.join(f.broadcast(_changes(evidence)), ["group", "broker"], "left")
    near = f.exists("changes", lambda at: f.abs(at - f.col("ts")) <= window)
    return known.where(~f.coalesce(near, f.lit(False))).withColumn(
        "span", f.size(f.filter("changes", lambda at: at <= f.col("ts")))
    )


def shared_queues(evidence: Evidence) -> DataFrame:
    """Queues of groups of which a node got something before another had got its last."""
    spans = evidence.spans.where(f.col("kind") == Kind.DELIVER).groupBy(*_QUEUE).agg(
        f.count(f.lit(1)).alias("nodes"),
        f.max("first_ts").alias("last_begin"),
        f.min("last_ts").alias("first_end"),
    )  # fmt: skip
    skew = evidence.options.skew_us
    several = spans.where((f.col("nodes") > 1) & f.col("group").isNotNull())
    # With three nodes the first to end may be done before the last begins, and the others still overlap.
    return several.where((f.col("nodes") > 2) | (f.col("last_begin") + skew < f.col("first_end"))).select(
        *_QUEUE
    )


def _changes(evidence: Evidence) -> DataFrame:
    """When owners of a group's queues at a broker may have changed, and how many rebalances are told."""
    readers = evidence.spans.where(f.col("kind") == Kind.DELIVER).select("group", "broker", "node").distinct()
    told = []
    for cause, by in _BY.items():
        times = evidence.causes.where(f.col("cause") == cause).select(
            "key", "at", f.lit(cause).alias("cause")
        )
        met = readers.join(f.broadcast(times), f.col(by) == f.col("key"))
        told.append(met.select("group", "broker", "cause", "at").distinct())
    is_rebalance = f.when(f.col("cause") == "rebalance", f.size("at"))
    return (
        reduce(DataFrame.unionByName, told)
        .groupBy("group", "broker")
        .agg(
            f.flatten(f.collect_list("at")).alias("changes"),
            f.coalesce(f.sum(is_rebalance), f.lit(0)).alias("rebalances"),
        )
    )


def _blind(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del tallies
    if causes.get("rebalance_not_told"):
        return "queues were handed to several nodes at once, in groups that tell of no rebalance"
    return ""


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    one_owner,
    counted("shared_queues", "rebalance_events"),
    _blind,
    needs=("shared_queues",),
)
