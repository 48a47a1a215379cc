"""DELIV-13 NeverOverlaps: for a queue that is consumed in order, at most one listener call runs at a time.

The user names the groups that consume in order (`--orderly-group`), or `attrs.orderly` of a rebalance does. A
call of a listener is a series of deliveries to one member, up to the last end reported for it (consume_ok,
consume_fail). Within a member, its sequence numbers decide: an overlap is a delivery after some messages
ended while others of the call were still running. Between members, clocks decide, less the allowed skew.

An overlap is legal if the loss of a lock explains it. The broker may have crashed in between, or earlier by
no more than the time for which a member trusts a lock: a restarted broker has no locks. Or the first call ran
longer than a lock lasts (cause `lock_expired`).

Cannot conclude: anything about a call whose end is not reported. If neither of two calls of a member ended
before the second began, they look like one batch. With three members, an overlap with one may hide that with
another.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, explain, findings, unknown_without
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.groups import orderly_groups
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-13"
RULE: Final = "orderly-overlap"

_QUEUE: Final = ("group", "broker", "topic", "queue_id")
_MEMBER: Final = (*_QUEUE, "node")
_TRUST_US: Final = 30_000_000
"""How long after the last renewal of its lock a member still starts calls, in our and in released clients."""
_ENDS: Final = (Kind.CONSUME_OK, Kind.CONSUME_FAIL)
_SHOWN: Final = (*_QUEUE, "queue_offset", "msg_id", "client", "ts")


def never_overlaps(evidence: Evidence) -> DataFrame:
    rows = _numbered(evidence)
    overlaps = explain(
        _within_a_member(rows).unionByName(_between_members(rows, evidence)), evidence, ("broker_crash",)
    )
    too_long = f.col("ts") - f.col("call_ts") > evidence.options.lock_us
    return findings(
        overlaps,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        cause=f.coalesce("cause", f.when(too_long, f.lit("lock_expired"))),
        first_ts="call_ts",
        last_ts="ts",
        evidence=f.format_string("delivered while %s was still processing this queue", "other"),
    )


def _numbered(evidence: Evidence) -> DataFrame:
    """Return deliveries and their ends, with the number of the `call` to which each belongs.

    A new call begins with the first delivery after an end.
    """
    rows = evidence.events.where(
        f.col("kind").isin(Kind.DELIVER, *_ENDS) & f.col("queue_offset").isNotNull()
    ).join(f.broadcast(orderly_groups(evidence.rare, evidence.options)), "group", "left_semi")
    in_order = Window.partitionBy(*_MEMBER).orderBy("seq")
    begins = _is_delivery() & f.coalesce(f.lag("kind").over(in_order) != Kind.DELIVER, f.lit(True))
    call = f.sum(f.when(f.col("begins"), 1).otherwise(0)).over(in_order)
    return rows.withColumn("begins", begins).withColumn("call", call).drop("begins")


def _within_a_member(rows: DataFrame) -> DataFrame:
    """Return calls that began before the same member reported the end of its previous call."""
    late = _at_work(rows).where("end_call > call").groupBy(*_MEMBER, (f.col("call") + 1).alias("call")).agg(
        f.min("ts").alias("from_ts")
    )  # fmt: skip
    first = f.min(f.struct("seq", "ts", "queue_offset", "msg_id", "client")).alias("first")
    begun = rows.where(_is_delivery()).groupBy(*_MEMBER, "call").agg(first).join(late, [*_MEMBER, "call"])
    return begun.select(*_MEMBER, "call", "first.*", "from_ts").select(
        *_SHOWN,
        "from_ts",
        f.col("from_ts").alias("call_ts"),
        f.col("node").alias("other"),
        f.col("ts").alias("to_ts"),
    )


def _between_members(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Return pairs of calls of two members that overlap in time."""
    skew = evidence.options.skew_us
    # A delivered message without a reported end may have been given up long ago.
    calls = _at_work(rows).groupBy(*_MEMBER, "call").agg(
        f.min(f.struct("ts", "queue_offset", "msg_id", "client")).alias("first"),
        f.max("end_ts").alias("end_ts"),
    ).select(*_MEMBER, "call", "first.*", "end_ts")  # fmt: skip
    by_begin = Window.partitionBy(*_QUEUE).orderBy("ts", "node", "call")
    before = by_begin.rowsBetween(Window.unboundedPreceding, -1)
    overlaps = calls.withColumn("reach", f.max(f.struct("end_ts", "node", "ts")).over(before)).where(
        (f.col("reach.node") != f.col("node"))
        & (f.col("reach.end_ts") > f.col("ts") + skew)
        & (f.col("end_ts") > f.col("reach.ts") + skew)
    )
    return overlaps.select(
        *_SHOWN,
        # The later of the two calls may come from a member that still trusted a lock from before the crash.
        (f.col("reach.ts") - _TRUST_US).alias("from_ts"),
        f.col("reach.ts").alias("call_ts"),
        f.col("reach.node").alias("other"),
        f.col("ts").alias("to_ts"),
    )


def _at_work(rows: DataFrame) -> DataFrame:
    """Return deliveries whose end is reported, with end_ts and end_call of that end."""
    of_message = Window.partitionBy(*_MEMBER, "queue_offset").orderBy("seq")
    known = rows.select(
        "*",
        f.lead("kind").over(of_message).alias("end_kind"),
        f.lead("ts").over(of_message).alias("end_ts"),
        f.lead("call").over(of_message).alias("end_call"),
    )
    return known.where(_is_delivery() & f.col("end_kind").isin(*_ENDS))


def _is_delivery() -> Column:
    return f.col("kind") == Kind.DELIVER


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    never_overlaps,
    examined_tallies("orderly_groups", "orderly_ends"),
    unknown_without("orderly_ends", "groups that consume in order do not report when a call ended"),
    needs=("orderly_groups",),
)
