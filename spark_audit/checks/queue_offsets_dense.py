"""FLUSH-4 QueueOffsetsDense: the records of a queue have offsets without gap or repetition.

For each bucket of offsets, the check counts a bitmap of the offsets. Records are examined individually only
if the count is not that of a dense bucket. The log may begin at any offset, because older segments expire. A
gap over damaged bytes is judged by RecoveredPrefix (cause `damaged_record`).
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings, unknown_without
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.sources.store.stored import QUEUE

INVARIANT: Final = "FLUSH-4"
COLLISION: Final = "cq-offset-collision"
HOLE: Final = "cq-hole"

_BUCKET_OFFSETS: Final = 8 * 4096
"""Number of bits in one of Spark's bitmaps."""


def queue_offsets_dense(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    records = store.records.where("queued").withColumn(
        "bucket", f.floor(f.col("queue_offset") / _BUCKET_OFFSETS)
    )
    bit = (f.col("queue_offset") % _BUCKET_OFFSETS).cast("bigint")
    buckets = records.groupBy(*QUEUE, "bucket").agg(
        f.count(f.lit(1)).alias("rows"),
        f.min("queue_offset").alias("low"),
        f.max("queue_offset").alias("high"),
        f.max("commit_offset").alias("at"),
        f.bitmap_count(f.bitmap_construct_agg(bit)).alias("offsets"),
    )
    in_order = Window.partitionBy(*QUEUE).orderBy("bucket")
    buckets = buckets.withColumn("before", f.lag("high").over(in_order)).withColumn(
        "before_at", f.lag("at").over(in_order)
    )
    sparse = buckets.where("rows <> offsets OR offsets <> high - low + 1 OR before + 1 <> low")
    rows = records.join(sparse.select(*QUEUE, "bucket", "before", "before_at"), [*QUEUE, "bucket"])
    in_bucket = Window.partitionBy(*QUEUE, "bucket").orderBy("queue_offset", "commit_offset")
    steps = rows.select(
        *QUEUE,
        "queue_offset",
        "commit_offset",
        f.coalesce(f.lag("queue_offset").over(in_bucket), f.col("before")).alias("previous"),
        f.coalesce(f.lag("commit_offset").over(in_bucket), f.col("before_at")).alias("previous_at"),
    )
    twice = steps.where("queue_offset = previous").groupBy(*QUEUE, "queue_offset")
    collisions = twice.agg(f.max("commit_offset").alias("commit_offset"), f.count(f.lit(1)).alias("more"))
    return findings(
        collisions,
        INVARIANT,
        "critical",
        rule=f.lit(COLLISION),
        evidence=f.format_string("%d more records have this offset", "more"),
    ).unionByName(_holes(steps.where("queue_offset > previous + 1"), store.gaps))


def _holes(jumps: DataFrame, gaps: DataFrame) -> DataFrame:
    damage = gaps.where("kind = 'damage'").select(
        f.col("broker").alias("damaged_broker"), f.col("commit_offset").alias("damaged_at")
    )
    between = (f.col("broker") == f.col("damaged_broker")) & f.col("damaged_at").between(
        f.col("previous_at"), f.col("commit_offset")
    )
    known = jumps.join(f.broadcast(damage), between, "left")
    judged = known.groupBy(*QUEUE, "queue_offset", "previous", "commit_offset").agg(
        f.max(f.when(f.col("damaged_at").isNotNull(), f.lit("damaged_record"))).alias("cause")
    )
    missing = judged.withColumn("missing", f.col("queue_offset") - f.col("previous") - 1)
    return findings(
        missing.withColumn("queue_offset", f.col("previous") + 1),
        INVARIANT,
        "critical",
        rule=f.lit(HOLE),
        evidence=f.format_string("%d offsets from here on have no record", "missing"),
    )


CHECK: Final = Check(
    INVARIANT,
    (COLLISION, HOLE),
    queue_offsets_dense,
    examined_tallies("stored_records", "stored_queues"),
    unknown_without("stored_records", "no record is in the stores"),
    of_events=False,
    of_stores=True,
)
