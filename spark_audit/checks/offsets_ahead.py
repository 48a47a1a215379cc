"""The part of NoAckedLost about committed offsets: one beyond its queue would skip the next messages."""

from typing import Final

from mqproof.spark_audit.checks.check import findings
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import QUEUE, Stored
from mqproof.spec.events import Kind

AHEAD: Final = "offset-ahead"


def ahead_of_appends(evidence: Evidence, invariant: str) -> DataFrame:
    """Return offsets that a broker recorded beyond everything it ever appended to the queue, except resets.

    Both events are from one node, so neither log is newer than the other. A queue without an append in the
    log decides nothing.
    """
    placed = evidence.profile.where("placed AND rare IS NULL").withColumnRenamed("node", "broker")
    appended = placed.where(f.col("kind") == Kind.APPEND)
    ends = appended.groupBy(*QUEUE).agg((f.max("offset_max") + 1).alias("queue_end"))
    committed = placed.where(f.col("kind") == Kind.OFFSET_COMMIT)
    reached = committed.groupBy("group", *QUEUE).agg(
        f.max("offset_max").alias("queue_offset"),
        f.min("first_ts").alias("first_ts"),
        f.max("last_ts").alias("last_ts"),
    )
    return findings(
        reached.join(ends, list(QUEUE)).where("queue_offset > queue_end"),
        invariant,
        "critical",
        rule=f.lit(AHEAD),
        evidence=f.format_string("committed, though the queue never went beyond %d", "queue_end"),
    )


def ahead_of_store(store: Stored, invariant: str) -> DataFrame:
    """Return committed offsets beyond the end of their queue: the next stored messages would be skipped."""
    stored = store.records.where("queued").select(*QUEUE, "queue_offset")
    entries = store.entries.where("kind = 'entry'").select(*QUEUE, "queue_offset")
    ends = stored.unionByName(entries).groupBy(*QUEUE).agg((f.max("queue_offset") + 1).alias("queue_end"))
    committed = store.offsets.join(ends, list(QUEUE), "left").join(f.broadcast(store.bounds), "broker")
    ahead = committed.where("queue_offset > coalesce(queue_end, 0)")
    return findings(
        ahead,
        invariant,
        "critical",
        rule=f.lit(AHEAD),
        # If nothing of a queue is left, its end is unknown.
        cause=f.expr("CASE WHEN queue_end IS NULL AND log_begin > 0 THEN 'expired' END"),
        evidence=f.format_string("committed, though the queue ends at %d", f.coalesce("queue_end", f.lit(0))),
    )
