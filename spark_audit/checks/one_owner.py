"""DELIV-6 OneOwner: in cluster mode a queue has one owner in a group, outside rebalance windows.

Owners change if the group rebalances, a member starts or ends, or the broker crashes. Between two such
changes, except in the rebalance window around each, a queue is delivered to one node only. The check examines
queues for which the runs of deliveries (passes/sequences.py) of several nodes overlap in such a period. An
overlap of no more than the clock skew proves nothing. Groups that report no rebalance at all prove nothing
either (cause `rebalance_not_reported`).

Two owners have consequences, which other checks find: a message is delivered twice (DELIV-3), an owner skips
what the other received (DELIV-4), an offset goes back (DELIV-5). They have the cause `two_owners` there, and
are counted here.

Cannot conclude: who owns a queue from which nothing is delivered; whether a queue has no owner for too long.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-6"
RULE: Final = "double-owned"
NOT_REPORTED: Final = "rebalance_not_reported"
TWO_OWNERS: Final = "two_owners"
"""The cause of findings of other checks that are a consequence of double-owned."""

_QUEUE: Final = ("group", "broker", "topic", "queue_id")
_BY: Final = {"rebalance": "group", "consumer_restart": "node", "broker_crash": "broker"}
"""Maps each event that changes owners to the column that is its key."""
_SPAN: Final = ("rebalances", "span", "calm_from", "calm_until")
_OF: Final = {name: f"of_{name}" for name in _QUEUE}
_UNBOUNDED: Final = (-(1 << 62), 1 << 62)


def one_owner(evidence: Evidence) -> DataFrame:
    # Group by client first: a maximum over a text column would sort all rows.
    by_client = (
        _deliveries_in(evidence, _suspects(evidence))
        .groupBy(*_QUEUE, "rebalances", "span", "node", "client")
        .agg(f.min("ts").alias("first_ts"), f.max("ts").alias("last_ts"))
    )
    owned = by_client.groupBy(*_QUEUE, "rebalances", "span", "node").agg(
        f.min("first_ts").alias("first_ts"),
        f.max("last_ts").alias("last_ts"),
        f.max("client").alias("client"),
    )
    overlaps = _after_another(owned).where(
        f.col("other.last_ts") > f.col("first_ts") + evidence.options.skew_us
    )
    return findings(
        overlaps,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        cause=f.when(f.col("rebalances") == 0, f.lit(NOT_REPORTED)),
        evidence=f.format_string("also delivered to %s, which received it before and after", "other.node"),
    )


def with_owners(
    rows: DataFrame,
    evidence: Evidence,
    causes: tuple[str, ...] = (TWO_OWNERS,),
    only: Column | None = None,
) -> DataFrame:
    """Name the cause of rows that follow from two owners of their queue at the same time.

    The rows have group, broker, topic, queue_id, from_ts, to_ts and cause. Two owners read a queue past each
    other: they receive messages twice, skip what the other received, and commit each other's offsets. That is
    one violation, which OneOwner reports. With NOT_REPORTED in `causes`, the owners may be unknown.
    `only` is the condition for rows that may be such a consequence.
    """
    time = f.struct(f.col("first_ts").alias("from"), f.col("last_ts").alias("until"))
    owned = one_owner(evidence).withColumn("owners", f.coalesce("cause", f.lit(TWO_OWNERS)))
    owned = owned.where(f.col("owners").isin(*causes)).groupBy(
        *[f.col(name).alias(_OF[name]) for name in _QUEUE]
    ).agg(f.max("owners").alias("owners"), f.collect_list(time).alias("owned"))  # fmt: skip
    skew = evidence.options.skew_us

    def meets(owned: Column) -> Column:
        return (f.col("from_ts") <= owned["until"] + skew) & (f.col("to_ts") >= owned["from"] - skew)

    same_queue = reduce(lambda one, other: one & other, [f.col(name) == f.col(_OF[name]) for name in _QUEUE])
    if only is not None:
        same_queue = same_queue & only
    joined = rows.join(f.broadcast(owned), same_queue, "left")
    cause = f.coalesce("cause", f.when(f.exists("owned", meets), f.col("owners")))
    return joined.withColumn("cause", cause).select(*rows.columns)


def turns(evidence: Evidence, watermark: int) -> DataFrame:
    """Return node and seq of the rows that are needed to judge later rows.

    No row before the watermark is still to come. The result has, for each shared queue, the first and last
    delivery to each node since the owners last changed.
    """
    window = evidence.options.rebalance_us
    still_open = _stable_spans(evidence).where(f.col("calm_until") + window + 1 >= watermark)
    of_shared = shared_queues(evidence).join(f.broadcast(still_open), ["group", "broker"])
    ends = [extreme("seq", "ts") for extreme in (f.min_by, f.max_by)]
    rows = (
        _deliveries_in(evidence, of_shared).groupBy(*_QUEUE, "span", "node").agg(f.array(*ends).alias("ends"))
    )
    return rows.select("node", f.explode(f.array_distinct("ends")).alias("seq"))


def _deliveries_in(evidence: Evidence, spans: DataFrame) -> DataFrame:
    """Return the deliveries from some queues in some calm spans."""
    deliveries = evidence.events.where(f.col("kind") == Kind.DELIVER)
    within = f.col("ts").between(f.col("calm_from"), f.col("calm_until"))
    for name in _QUEUE:
        within = within & (f.col(name) == f.col(_OF[name]))
    return deliveries.join(f.broadcast(spans.withColumnsRenamed(_OF)), within)


def _after_another(owned: DataFrame) -> DataFrame:
    """Add `other`: (last_ts, node) of the node that keeps the queue longest, of those that had it earlier."""
    by_begin = Window.partitionBy(*_QUEUE, "span").orderBy("first_ts", "node")
    before = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    return owned.withColumn("other", f.max(f.struct("last_ts", "node")).over(before))


def _suspects(evidence: Evidence) -> DataFrame:
    """Return the queues and calm spans in which runs of two nodes meet.

    The rows within a run may leave gaps, but they never extend beyond its ends.
    """
    runs = evidence.runs.where(f.col("kind") == Kind.DELIVER)
    of_shared = runs.join(f.broadcast(shared_queues(evidence)), list(_QUEUE), "left_semi")
    within = (f.col("first_ts") <= f.col("calm_until")) & (f.col("last_ts") >= f.col("calm_from"))
    spanned = of_shared.join(f.broadcast(_stable_spans(evidence)), ["group", "broker"]).where(within)
    held = spanned.groupBy(*_QUEUE, "node", *_SPAN).agg(
        f.min(f.greatest("first_ts", "calm_from")).alias("first_ts"),
        f.max(f.least("last_ts", "calm_until")).alias("last_ts"),
    )
    # A node's clock may have gone back within a run.
    overlaps = _after_another(held).where(
        f.col("other.last_ts") >= f.col("first_ts") - 2 * evidence.options.skew_us
    )
    return overlaps.select(*_QUEUE, *_SPAN).distinct()


def shared_queues(evidence: Evidence) -> DataFrame:
    """Return queues of groups in which a node received a message before another received its last."""
    spans = evidence.spans.where(f.col("kind") == Kind.DELIVER).groupBy(*_QUEUE).agg(
        f.count(f.lit(1)).alias("nodes"),
        f.max("first_ts").alias("last_begin"),
        f.min("last_ts").alias("first_end"),
    )  # fmt: skip
    skew = evidence.options.skew_us
    several = spans.where((f.col("nodes") > 1) & f.col("group").isNotNull())
    # With three nodes, the first to end may finish before the last begins, and the others may still overlap.
    return several.where((f.col("nodes") > 2) | (f.col("last_begin") + skew < f.col("first_end"))).select(
        *_QUEUE
    )


def _stable_spans(evidence: Evidence) -> DataFrame:
    """Return the calm spans of each group and broker: the times between two changes of owners.

    Columns: group, broker, the number of `rebalances`, `span`, and calm_from and calm_until (inclusive).
    Rebalance windows are excluded.
    """
    readers = evidence.spans.where(f.col("kind") == Kind.DELIVER).select("group", "broker", "node").distinct()
    changes_by_cause = []
    for cause, by in _BY.items():
        times = evidence.causes.where(f.col("cause") == cause).select("key", "at")
        affected = readers.join(f.broadcast(times), f.col(by) == f.col("key"))
        rebalances = f.size("at") if cause == "rebalance" else f.lit(0)
        changes_by_cause.append(
            affected.select("group", "broker", "at", rebalances.alias("rebalances")).distinct()
        )
    changes_by_cause.append(
        readers.select("group", "broker", f.array().cast("array<long>"), f.lit(0)).distinct()
    )
    changes = (
        reduce(lambda one, other: one.union(other), changes_by_cause)
        .groupBy("group", "broker")
        .agg(
            f.sum("rebalances").alias("rebalances"),
            f.array_sort(f.flatten(f.collect_list("at"))).alias("at"),
        )
    )
    window = evidence.options.rebalance_us
    begins = f.concat(f.array(f.lit(_UNBOUNDED[0])), f.transform("at", lambda at: at + window + 1))
    ends = f.concat(f.transform("at", lambda at: at - window - 1), f.array(f.lit(_UNBOUNDED[1])))
    spans = changes.select(
        "group", "broker", "rebalances", f.posexplode(f.arrays_zip(begins.alias("a"), ends.alias("b")))
    )
    each = spans.select(
        "group", "broker", "rebalances", f.col("pos").alias("span"),
        f.col("col.a").alias("calm_from"), f.col("col.b").alias("calm_until"),
    )  # fmt: skip
    return each.where("calm_from <= calm_until")


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    del tallies
    if causes.get(NOT_REPORTED):
        return "queues were delivered to several nodes at once, in groups that report no rebalance"
    return ""


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    one_owner,
    examined_tallies("shared_queues", "rebalance_events"),
    _unknown_reason,
    needs=("shared_queues",),
)
