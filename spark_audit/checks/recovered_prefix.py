"""FLUSH-5 RecoveredPrefix: the log consists of whole, consecutive records, none altered or invented.

A record's CRC, lengths, texts and intended position are compared with the actual bytes. Damage behind the
last whole record of a log that was not shut down is a torn tail, which recovery truncates (cause
`torn_tail`).

Store times along the log must not go back by more than the clock skew, because recovery uses them to choose
where to begin.

With an event log, records that recovery truncated must not reappear.

Cannot conclude: anything about headers, topics and properties that were altered without a change of length,
which have no checksum; whether whole records at the end are missing.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings, unknown_without
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import Stored

INVARIANT: Final = "FLUSH-5"
RULE: Final = "altered-record"
TIME: Final = "time-anomaly"
RESURRECTED: Final = "resurrected-tail"

_BUCKET_BITS: Final = 24


def recovered_prefix(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    damage = store.gaps.where("kind = 'damage'").join(f.broadcast(store.bounds), "broker")
    altered = _altered(damage)
    return altered.unionByName(_back_in_time(store, evidence.options.skew_us)).unionByName(
        _resurrected(evidence)
    )


def _altered(damage: DataFrame) -> DataFrame:
    is_tail = (f.col("commit_offset") >= f.col("whole_end")) & ~f.col("is_clean")
    return findings(
        damage,
        INVARIANT,
        "critical",
        rule=f.lit(RULE),
        cause=f.when(is_tail, f.lit("torn_tail")),
        evidence=f.format_string("%d bytes at commit offset %d: %s", "size", "commit_offset", "detail"),
    )


def _back_in_time(store: Stored, skew_us: int) -> DataFrame:
    """Return records stored before the preceding record, or before they were born."""
    bucket = f.shiftright("commit_offset", _BUCKET_BITS).alias("bucket")
    records = store.records.select("*", bucket)
    in_bucket = Window.partitionBy("broker", "bucket").orderBy("commit_offset")
    # The record before the first one of a bucket is the last one of the previous bucket.
    ends = records.groupBy("broker", "bucket").agg(f.max_by("stored_ms", "commit_offset").alias("last_ms"))
    before = f.lag("last_ms").over(Window.partitionBy("broker").orderBy("bucket"))
    ends = ends.select("broker", "bucket", before.alias("bucket_before_ms"))
    previous = f.coalesce(f.lag("stored_ms").over(in_bucket), f.col("bucket_before_ms"))
    timed = records.join(f.broadcast(ends), ["broker", "bucket"]).withColumn("previous_ms", previous)
    allowed_ms = skew_us // 1000
    anomalies = timed.where(f"previous_ms - stored_ms > {allowed_ms} OR born_ms - stored_ms > {allowed_ms}")
    return findings(
        anomalies,
        INVARIANT,
        "error",
        rule=f.lit(TIME),
        first_ts=f.col("stored_ms") * 1000,
        last_ts=f.col("stored_ms") * 1000,
        evidence=f.format_string(
            "stored at %d ms, after a record of %d ms, born at %d ms",
            "stored_ms", f.coalesce("previous_ms", "stored_ms"), "born_ms",
        ),
    )  # fmt: skip


def _resurrected(evidence: Evidence) -> DataFrame:
    """Return messages in their broker's log although recovery truncated every reported append of them."""
    truncated = evidence.messages.where("appends > 0 AND cut = appends").select(
        "msg_id", "acked_ts", f.explode(f.transform("places", lambda its: its["broker"])).alias("broker")
    )
    back = evidence.stored.records.join(f.broadcast(truncated.distinct()), ["msg_id", "broker"])
    return findings(
        back,
        INVARIANT,
        "critical",
        rule=f.lit(RESURRECTED),
        first_ts=f.col("stored_ms") * 1000,
        last_ts=f.col("stored_ms") * 1000,
        evidence=f.format_string("recovery cut it off, but it is at commit offset %d again", "commit_offset"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE, TIME, RESURRECTED),
    recovered_prefix,
    examined_tallies("stored_records", "stored_bytes"),
    unknown_without("stored_records", "no record is in the stores"),
    of_events=False,
    of_stores=True,
)
