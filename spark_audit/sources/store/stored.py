"""The tables of store directories that the checks read, and the queue buckets in which they are compared."""

from dataclasses import dataclass
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame

_BUCKET_OFFSETS: Final = 4096

QUEUE: Final = ("broker", "topic", "queue_id")


@dataclass(frozen=True, slots=True)
class Stored:
    records: DataFrame
    """Each whole record.

    The columns are broker, commit_offset, size, topic, queue_id, queue_offset, msg_id, tags, born_ms,
    stored_ms, queued (it belongs to a queue), hashed (of all its fields, with the body's CRC), and term and
    entry_index (null outside a ledger).
    """
    gaps: DataFrame
    """broker, kind (filler | zeros | damage), commit_offset, size, detail."""
    entries: DataFrame
    """The units of the consume queues.

    The columns are broker, kind (entry | blank | zeros | damage), topic, queue_id, queue_offset, units,
    commit_offset, size, detail.
    """
    index: DataFrame
    """broker, kind (entry | damage), file, commit_offset, detail."""
    offsets: DataFrame
    """broker, topic, group, queue_id, queue_offset, from consumerOffset.json."""
    topics: DataFrame
    """broker, topic, queues, from topics.json.

    Each existing topics.json also has one row with a null topic.
    """
    bounds: DataFrame
    """One row per broker: log_begin, whole_end (of the last whole record), is_clean (it was shut down)."""
    replicas: DataFrame
    """master, slave: brokers whose logs should be equal."""
    members: DataFrame
    """master, slave: two members of a ledger; neither needs to be the other's master."""
    ambiguous: DataFrame
    """broker, topic, queue_id, bucket: buckets in which queue entries and records differ.

    Rows in other buckets need no individual check.
    """

    def ambiguous_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows (records or entries) in ambiguous buckets."""
        keyed = rows.withColumn("bucket", bucket())
        return keyed.join(self.ambiguous, [*QUEUE, "bucket"], "left_semi").drop("bucket")

    def explained(self, rows: DataFrame) -> DataFrame:
        """Add `cause` to rows whose commit_offset has no record: why that is legal, or null."""
        damage = self.gaps.where("kind = 'damage'").select(
            f.col("broker").alias("damaged_broker"), f.col("commit_offset").alias("from"), "size"
        )
        within = (
            (f.col("broker") == f.col("damaged_broker"))
            & (f.col("commit_offset") >= f.col("from"))
            & (f.col("commit_offset") < f.col("from") + f.col("damaged_size"))
        )
        cause = f.expr(
            "CASE WHEN commit_offset < log_begin THEN 'expired'"
            " WHEN damaged_broker IS NOT NULL THEN 'damaged_record'"
            " WHEN commit_offset >= whole_end AND NOT is_clean THEN 'not_recovered' END"
        )
        known = rows.join(f.broadcast(damage.withColumnRenamed("size", "damaged_size")), within, "left")
        known = known.join(f.broadcast(self.bounds), "broker", "left")
        return known.select(*rows.columns, cause.alias("cause"))


def bucket() -> Column:
    return f.floor(f.col("queue_offset") / _BUCKET_OFFSETS)
