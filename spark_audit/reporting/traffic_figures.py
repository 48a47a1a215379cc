"""Lag and latencies of groups: a few numbers for each topic and group, for metrics."""

from dataclasses import dataclass
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX
from mqproof.spec.events import Kind

QUANTILES: Final = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class TrafficFigures:
    lag: tuple[tuple[str, str, int], ...] = ()
    """Topic, group, and the number of stored messages behind the last delivery of each queue."""
    waits: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """Topic, group, and the QUANTILES of the time from send to first delivery, in microseconds."""


def traffic_figures(evidence: Evidence) -> TrafficFigures:
    """Return the figures of the rows that the evidence is about. Runs two jobs, and reads the log once."""
    return TrafficFigures(_lag(evidence), _waits(evidence))


def _lag(evidence: Evidence) -> tuple[tuple[str, str, int], ...]:
    kind, queue = f.col("kind"), ("broker", "topic", "queue_id")
    stored = evidence.profile.where(kind.isin(Kind.APPEND, Kind.SEND_ACK) & f.col("offset_max").isNotNull())
    ends = (
        stored.withColumn("broker", f.coalesce("stated", "node"))
        .groupBy(*queue)
        .agg(f.max("offset_max").alias("end"))
    )
    reached = (
        evidence.spans.where(kind == Kind.DELIVER)
        .groupBy("group", *queue)
        .agg(f.max("offset_max").alias("reached"))
        .where(f.col("group").isNotNull() & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    )
    behind = f.greatest(f.col("end") - f.col("reached"), f.lit(0))
    rows = reached.join(ends, [*queue]).groupBy("topic", "group").agg(f.sum(behind).alias("lag"))
    return tuple(sorted((row["topic"], row["group"], row["lag"]) for row in rows.collect()))


def _waits(evidence: Evidence) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    kind = f.col("kind")
    known = evidence.events.where(f.col("msg_id").isNotNull())
    sent = known.where(kind == Kind.SEND).groupBy("msg_id").agg(f.min("ts").alias("sent_ts"))
    delivered = known.where(
        (kind == Kind.DELIVER)
        & f.col("group").isNotNull()
        & f.col("topic").isNotNull()
        & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX)
    )
    first = delivered.groupBy("topic", "group", "msg_id").agg(f.min("ts").alias("first_ts"))
    # Clocks differ: a delivery that seems to precede its send took no time.
    wait = f.greatest(f.col("first_ts") - f.col("sent_ts"), f.lit(0))
    rows = (
        first.join(sent, "msg_id")
        .groupBy("topic", "group")
        .agg(f.percentile_approx(wait, list(QUANTILES)).alias("waits"))
    )
    return tuple(sorted((row["topic"], row["group"], tuple(row["waits"])) for row in rows.collect()))
