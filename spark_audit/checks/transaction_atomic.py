"""DELIV-9 TransactionAtomic: a half message is visible if and only if it was committed.

This check covers the safety part. No half message is delivered before its commit (within the clock skew) or
after a rollback, and none is both committed and rolled back. NoAckedLost checks that committed messages are
delivered.

Cannot conclude: anything, if no node records half messages; the outcome of a half message that is not
resolved when the log ends.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, event_tallies, examined_tallies, findings, never_unknown
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-9"
ABORTED: Final = "aborted-read"
EARLY: Final = "precommitted-read"
BOTH: Final = "committed-and-rolled-back"

_OF_HALVES: Final = (Kind.HALF, Kind.COMMIT, Kind.ROLLBACK)
_TALLIES: Final = event_tallies(*_OF_HALVES)


def transaction_atomic(evidence: Evidence) -> DataFrame:
    events, kind = evidence.events, f.col("kind")
    halves = events.where(kind.isin(*_OF_HALVES) & f.col("msg_id").isNotNull()).groupBy("msg_id").agg(
        f.max("topic").alias("topic"), _first(Kind.COMMIT, "commit_ts"), _first(Kind.ROLLBACK, "rollback_ts")
    )  # fmt: skip
    deliveries = events.where((kind == Kind.DELIVER) & f.col("msg_id").isNotNull())
    seen = deliveries.join(halves.drop("topic"), "msg_id").groupBy("msg_id", "group").agg(
        f.min("ts").alias("deliver_ts"),
        f.max("topic").alias("topic"),
        f.max("client").alias("client"),
        f.max("commit_ts").alias("commit_ts"),
        f.max("rollback_ts").alias("rollback_ts"),
    )  # fmt: skip
    skew = evidence.options.skew_us
    too_early = f.col("commit_ts").isNull() | (f.col("deliver_ts") < f.col("commit_ts") - skew)
    aborted = f.col("rollback_ts").isNotNull() & f.col("commit_ts").isNull()
    visible = findings(
        seen.where(too_early),
        INVARIANT,
        "critical",
        rule=f.when(aborted, f.lit(ABORTED)).otherwise(f.lit(EARLY)),
        first_ts="deliver_ts",
        last_ts="deliver_ts",
        evidence=f.when(aborted, f.lit("delivered, though it was rolled back")).otherwise(
            f.lit("delivered before it was committed")
        ),
    )
    both = findings(
        halves.where("commit_ts IS NOT NULL AND rollback_ts IS NOT NULL"),
        INVARIANT,
        "critical",
        rule=f.lit(BOTH),
        first_ts=f.least("commit_ts", "rollback_ts"),
        last_ts=f.greatest("commit_ts", "rollback_ts"),
        evidence=f.lit("committed and rolled back"),
    )
    return visible.unionByName(both)


def _first(kind: Kind, name: str) -> Column:
    return f.min(f.when(f.col("kind") == kind, f.col("ts"))).alias(name)


CHECK: Final = Check(
    INVARIANT,
    (ABORTED, EARLY, BOTH),
    transaction_atomic,
    examined_tallies(*_TALLIES),
    never_unknown,
    needs=_TALLIES,
    certain=(ABORTED, EARLY, BOTH),
)
