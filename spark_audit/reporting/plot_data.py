"""Computes the data of the page's plots by aggregation: a few hundred numbers, and some per queue.

Latencies are those of the messages that are checked exactly; in a large log, of a sample (evidence.Options).
"""

from typing import TYPE_CHECKING, Any, Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spec.events import Kind

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.event_log import EventLog

BUCKETS: Final = 120
WAIT_MIN_US: Final = 100
"""Shorter times are drawn as this one."""
_BINS_A_DECADE: Final = 10

_TRAFFIC: Final = (Kind.SEND, Kind.APPEND, Kind.DELIVER)
WAITS: Final = {
    "born to stored": ("send_ts", "stored_ts"),
    "born to acknowledged": ("send_ts", "acked_ts"),
    "stored to delivered": ("stored_ts", "delivered_ts"),
}
"""Maps a latency to the columns of sums.py between which it is measured."""


def pictures(
    evidence: Evidence, seen: Overview, profiled: DataFrame, log: "EventLog | None"
) -> dict[str, list[Any]]:
    """Return the data of the plots for the rows of `log`, which `profiled` counts.

    - over_time: (bucket's begin, kind, rows).
    - latency: (what, lower bound in microseconds, messages).
    - lag: (bucket's begin, median and 99th percentile of the time from storage to first delivery, in
      microseconds).
    - topics, brokers: (name, kind, rows).
    - queues: (broker, topic, queue_id, group, rows).
    """
    width = bucket_us(seen)
    # Only the sample: buckets that need exact checks have more faults than others.
    messages = evidence.sums.where("sampled")
    counts = _in_files(log, seen) if log else evidence.events.withColumn("bucket", _bucket("ts", seen))
    rows = f.sum("rows") if log else f.count(f.lit(1))
    over_time = counts.groupBy("bucket", "kind").agg(rows.alias("rows")).collect()
    return {
        "over_time": [(seen.first_ts + bucket * width, kind, count) for bucket, kind, count in over_time],
        "latency": _latency(messages),
        "lag": [(seen.first_ts + bucket * width, *waits) for bucket, waits in _lag(messages, seen)],
        "topics": _traffic(profiled, f.col("topic")),
        "brokers": _traffic(profiled, _reporting_broker(seen)),
        "queues": _queues(evidence.spans),
    }


def _in_files(log: "EventLog", seen: Overview) -> DataFrame:
    """Return (bucket, kind, rows), counted split by split."""
    from mqproof.spark_audit.scan.run_over_log import run_queries
    from mqproof.spark_audit.spark_schema import OVER_TIME

    by_bucket = f"""
        SELECT (ts - {seen.first_ts}) // {bucket_us(seen)} AS bucket, kind, count(*) AS rows
        FROM log GROUP BY ALL
    """
    return run_queries(log, [by_bucket], OVER_TIME)


def bucket_us(seen: Overview) -> int:
    """Return the width of a bucket of the plots over time."""
    return (seen.last_ts - seen.first_ts) // BUCKETS + 1


def _bucket(name: str, seen: Overview) -> Column:
    return f.floor((f.col(name) - seen.first_ts) / bucket_us(seen)).cast("long")


def _duration(begin: str, end: str) -> Column:
    # Clocks differ: an effect that seems to precede its cause took no time.
    return f.greatest(f.col(end) - f.col(begin), f.lit(WAIT_MIN_US))


def _latency(messages: DataFrame) -> list[Any]:
    waits = f.array(
        *[
            f.when(
                f.col(begin).isNotNull() & f.col(end).isNotNull(),
                f.struct(f.lit(name).alias("what"), _duration(begin, end).alias("us")),
            )
            for name, (begin, end) in WAITS.items()
        ]
    )
    each = messages.select(f.explode(f.array_compact(waits)).alias("wait"))
    bins = each.groupBy("wait.what", f.floor(f.log10("wait.us") * _BINS_A_DECADE).cast("int").alias("bin"))
    rows = bins.count().orderBy("what", "bin").collect()
    return [(row["what"], 10 ** (row["bin"] / _BINS_A_DECADE), row["count"]) for row in rows]


def _lag(messages: DataFrame, seen: Overview) -> list[Any]:
    delivered = messages.where(
        f.col("stored_ts").isNotNull() & f.col("delivered_ts").between(seen.first_ts, seen.last_ts)
    )
    waits = f.percentile_approx(_duration("stored_ts", "delivered_ts"), [0.5, 0.99])
    by_time = delivered.groupBy(_bucket("delivered_ts", seen).alias("bucket")).agg(waits.alias("waits"))
    return [(row["bucket"], row["waits"]) for row in by_time.orderBy("bucket").collect()]


def _reporting_broker(seen: Overview) -> Column:
    """Return the broker that a row of the profile is about."""
    own = f.when(f.col("node").isin(*seen.brokers), f.col("node"))
    sole = f.lit(seen.brokers[0] if len(seen.brokers) == 1 else None).cast("string")
    return f.coalesce(f.col("stated"), own, sole)


def _traffic(profiled: DataFrame, by: Column) -> list[Any]:
    # Return all: the selection depends on the places of violations, which are not known here.
    rows = profiled.where(f.col("kind").isin(*map(str, _TRAFFIC)) & by.isNotNull())
    counts = rows.groupBy(by.alias("name"), "kind").agg(f.sum("rows").alias("rows"))
    return [tuple(row) for row in counts.collect()]


def _queues(spans: DataFrame) -> list[Any]:
    queues = (
        spans.where(f.col("kind") == Kind.DELIVER)
        .groupBy("broker", "topic", "queue_id", "group")
        .agg(f.sum("rows").alias("rows"))
    )
    return [tuple(row) for row in queues.collect()]
