"""FLUSH-3 QueuePointsIntoLog: a consume-queue entry points at a whole record of its own topic and queue.

Only entries in ambiguous buckets (sources/store/store_tables.py) are looked up. An entry whose record expired
with its segment is legal (cause `expired`). So is an entry beyond the end of a log that was not shut down and
will be recovered (`not_recovered`). An entry into damaged bytes is judged by RecoveredPrefix
(`damaged_record`). Light queues have entries for records of other topics (`light_queue`).

Cannot conclude: anything about tag codes, which an extension file may replace.
"""

from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, findings, unknown_without
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence

INVARIANT: Final = "FLUSH-3"
DANGLING: Final = "dangling-entry"
WRONG: Final = "wrong-entry"
DAMAGED: Final = "damaged-entry"
LIGHT_QUEUE_PREFIX: Final = "%LMQ%"


def queue_points_into_log(evidence: Evidence) -> DataFrame:
    store = evidence.stored
    entries = store.ambiguous_rows(store.entries.where("kind = 'entry'")).drop("kind", "units", "detail")
    # The record may belong to another queue, whose buckets need no check.
    records = store.records.join(
        entries.select("broker", "commit_offset"), ["broker", "commit_offset"], "left_semi"
    ).select(
        "broker",
        "commit_offset",
        f.col("topic").alias("its_topic"),
        f.col("queue_id").alias("its_queue_id"),
        f.col("queue_offset").alias("its_queue_offset"),
        f.col("size").alias("its_size"),
        "msg_id",
    )
    matched = entries.join(records, ["broker", "commit_offset"], "left")
    dangling = store.explained(matched.where("its_topic IS NULL")).withColumn(
        "evidence", f.format_string("points at commit offset %d, where no record begins", "commit_offset")
    )
    differs = matched.where(
        "topic <> its_topic OR queue_id <> its_queue_id OR queue_offset <> its_queue_offset"
        " OR size <> its_size"
    )
    wrong = differs.withColumn(
        "cause", f.when(f.col("topic").startswith(LIGHT_QUEUE_PREFIX), f.lit("light_queue"))
    ).withColumn(
        "evidence",
        f.format_string(
            "points at the record of %s/%d/%d with %d bytes, and states %d",
            "its_topic", "its_queue_id", "its_queue_offset", "its_size", "size",
        ),
    )  # fmt: skip
    damaged = store.entries.where("kind = 'damage'").withColumn("evidence", f.col("detail"))
    columns: dict[str, str] = {"evidence": "evidence"}
    return (
        findings(dangling, INVARIANT, "critical", rule=f.lit(DANGLING), **columns)
        .unionByName(findings(wrong.drop("msg_id"), INVARIANT, "critical", rule=f.lit(WRONG), **columns))
        .unionByName(findings(damaged, INVARIANT, "critical", rule=f.lit(DAMAGED), **columns))
    )


CHECK: Final = Check(
    INVARIANT,
    (DANGLING, WRONG, DAMAGED),
    queue_points_into_log,
    examined_tallies("queue_entries", "stored_records"),
    unknown_without("queue_entries", "no consume-queue entry is in the stores"),
    of_events=False,
    of_stores=True,
)
