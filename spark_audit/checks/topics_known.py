"""The part of NoAckedLost about topics.json: consumers cannot read a topic that its broker has forgotten."""

from typing import Final

from mqproof.spark_audit.checks.check import findings
from mqproof.spark_audit.checks.queue_points_into_log import LIGHT_QUEUE_PREFIX
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.sources.store.stored import Stored

METADATA: Final = "metadata-loss"
_NEVER_ENTERED: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
"""Topic of half-message outcomes: 4.9.5 writes to it, but does not list it in topics.json."""


def topics_unknown(store: Stored, invariant: str) -> DataFrame:
    """Return topics with queue entries of existing records that their broker's topics.json does not list.

    Queues beyond a topic's number of queues are legal if that number was reduced (cause `queues_reduced`),
    and can no longer be read. Brokers without a topics.json, such as those of a copied log, are not judged.
    """
    entries = store.entries.where("kind = 'entry'").join(f.broadcast(store.bounds), "broker")
    topic = f.col("topic")
    is_listed = ~topic.startswith(LIGHT_QUEUE_PREFIX) & (topic != _NEVER_ENTERED)
    kept = entries.where((f.col("commit_offset") >= f.col("log_begin")) & is_listed)
    held = kept.groupBy("broker", "topic").agg(
        f.max("queue_id").alias("queue_id_max"), f.count(f.lit(1)).alias("entries")
    )
    judged = held.join(
        f.broadcast(store.topics.where("topic IS NULL").select("broker")), "broker", "left_semi"
    )
    known = judged.join(f.broadcast(store.topics.where("topic IS NOT NULL")), ["broker", "topic"], "left")
    unknown = known.where("queues IS NULL OR queue_id_max >= queues")
    return findings(
        unknown,
        invariant,
        "critical",
        rule=f.lit(METADATA),
        cause=f.expr("CASE WHEN queues IS NOT NULL THEN 'queues_reduced' END"),
        evidence=f.format_string("not in topics.json, but its queues hold %d messages", "entries"),
    )
