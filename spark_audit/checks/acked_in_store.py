"""The part of NoAckedLost that uses store directories: acknowledged messages must be stored.

A message decides nothing if its acknowledged place has expired, or if the broker's store was not given
(causes `expired`, `store_not_given`). The store must not be older than the event log.
"""

from typing import Final

from mqproof.spark_audit.checks.check import findings
from mqproof.spark_audit.checks.truncated_messages import with_outcome
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import QUEUE

ABSENT: Final = "not-in-store"


def not_in_store(evidence: Evidence, invariant: str) -> DataFrame:
    """Return messages with SEND_OK that no store contains, at whatever place the acknowledgement named."""
    store = evidence.stored
    acked = with_outcome(evidence.messages.where("acked > 0"))
    absent = acked.join(store.records.select("msg_id"), "msg_id", "left_anti")
    at = absent.withColumn("place", f.explode_outer("places")).select(
        "msg_id", "topic", "acked_ts", (f.col("is_gone") & f.col("is_async")).alias("may_be_gone"),
        "place.broker", "place.queue_id", "place.queue_offset",
    )  # fmt: skip
    kept = store.records.groupBy(*QUEUE).agg(f.min("queue_offset").alias("first_kept"))
    known = at.join(f.broadcast(kept), list(QUEUE), "left").join(f.broadcast(store.bounds), "broker", "left")
    cause = f.expr(
        "CASE WHEN may_be_gone THEN 'async_flush'"
        " WHEN log_begin IS NULL THEN 'store_not_given'"
        " WHEN queue_offset < first_kept OR (first_kept IS NULL AND log_begin > 0) THEN 'expired' END"
    )
    judged = (
        known.withColumn("cause", cause)
        .groupBy("msg_id")
        .agg(
            f.max("topic").alias("topic"),
            f.min("acked_ts").alias("acked_ts"),
            # With several places, one that may still hold the message is enough.
            f.max("cause").alias("cause"),
            f.min(f.struct("broker", "queue_id", "queue_offset")).alias("at"),
        )
        .select("msg_id", "topic", "acked_ts", "cause", "at.*")
    )
    return findings(
        judged,
        invariant,
        "critical",
        rule=f.lit(ABSENT),
        first_ts="acked_ts",
        last_ts="acked_ts",
        evidence=f.lit("acknowledged with SEND_OK, and no record of the store has it"),
    )
