"""DELIV-7 RetryThenDeadLetter: a failing message is retried, then dead-lettered, never dropped.

A message is dropped if its consumption failed and the same node then committed its offset as done. It must
also never have been sent back to the broker (retry, dead_letter) and never delivered again. A message that a
member of the group has consumed is not dropped: until the group agrees, two members may have a queue, and one
may fail a message that the other has finished. A dead letter is not delivered again, except for the causes of
any repeated delivery: a rebalance, a restart, a crash, a reset (named as the cause).

Cannot conclude: whether the delays and the number of retries were respected, which no log shows; anything
about clients that do not report failures.
"""

from typing import Final

from mqproof.spark_audit.checks.check import (
    Check,
    event_tallies,
    examined_tallies,
    explain,
    findings,
    never_unknown,
)
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-7"
DROPPED: Final = "failed-and-dropped"
DELIVERED: Final = "dead-letter-delivered"

_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset")
_TALLIES: Final = event_tallies(Kind.CONSUME_FAIL, Kind.DEAD_LETTER)
_CAUSES: Final = ("rebalance", "consumer_restart", "broker_crash", "offset_reset")


def retry_then_dead_letter(evidence: Evidence) -> DataFrame:
    return _dropped(evidence).unionByName(_delivered(evidence))


def _dropped(evidence: Evidence) -> DataFrame:
    return findings(
        _passed(_left(evidence), evidence),
        INVARIANT,
        "critical",
        rule=f.lit(DROPPED),
        evidence=f.lit(
            "consumption failed; it was neither sent back nor delivered again, and is committed as consumed"
        ),
    )


def pending(evidence: Evidence) -> DataFrame:
    """Return msg_id of failed messages without a later event that are not yet committed as done."""
    left = _left(evidence)
    of_message = ["msg_id", "group", *_PLACE]
    return left.join(_passed(left, evidence).select(*of_message), of_message, "left_anti").select("msg_id")


def _left(evidence: Evidence) -> DataFrame:
    """Return failed messages that were never consumed, sent back or delivered again."""
    kind = f.col("kind")
    failed = evidence.rare.where(kind == Kind.CONSUME_FAIL).groupBy("msg_id", "group", "node", *_PLACE).agg(
        f.max("seq").alias("fail_seq"), f.max("ts").alias("fail_ts"), f.max("client").alias("client")
    )  # fmt: skip
    of_failed = evidence.failure_events.where(
        kind.isin(Kind.RETRY, Kind.DEAD_LETTER, Kind.DELIVER, Kind.CONSUME_OK)
    )
    later_events = of_failed.select(
        f.col("msg_id").alias("its_id"),
        f.col("group").alias("its_group"),
        f.col("ts").alias("its_ts"),
        f.col("kind").alias("its_kind"),
        f.col("node").alias("its_node"),
        f.col("seq").alias("its_seq"),
    )
    is_handled = f.col("its_kind").isin(Kind.RETRY, Kind.DEAD_LETTER, Kind.CONSUME_OK)
    # Sequence numbers order the events of its own node; for other nodes only clocks do.
    later = f.when(f.col("its_node") == f.col("node"), f.col("its_seq") > f.col("fail_seq")).otherwise(
        f.col("its_ts") >= f.col("fail_ts") - evidence.options.skew_us
    )
    same = (f.col("its_id") == f.col("msg_id")) & (f.col("its_group") == f.col("group"))
    return failed.join(later_events, same & (is_handled | later), "left_anti")


def _passed(left: DataFrame, evidence: Evidence) -> DataFrame:
    """Return the messages that their own node then committed as done."""
    # The few messages are broadcast to the many commits; without messages the log is not read.
    commits = evidence.events.where(f.col("kind") == Kind.OFFSET_COMMIT).select(
        f.col("node").alias("by_node"),
        f.col("group").alias("by_group"),
        *[f.col(name).alias(f"by_{name}") for name in _PLACE],
        f.col("seq").alias("by_seq"),
        f.col("ts").alias("by_ts"),
    )
    passed = f.col("by_node") == f.col("node")
    for name in ("group", "broker", "topic", "queue_id"):
        passed = passed & (f.col(f"by_{name}") == f.col(name))
    passed = (
        passed & (f.col("by_queue_offset") > f.col("queue_offset")) & (f.col("by_seq") > f.col("fail_seq"))
    )
    return commits.join(f.broadcast(left), passed).groupBy("msg_id", "group", "client", *_PLACE).agg(
        f.min("fail_ts").alias("first_ts"), f.min("by_ts").alias("last_ts")
    )  # fmt: skip


def _delivered(evidence: Evidence) -> DataFrame:
    events, kind = evidence.failure_events, f.col("kind")
    dead = events.where(kind == Kind.DEAD_LETTER).groupBy("msg_id", "group").agg(f.max("ts").alias("from_ts"))
    deliveries = events.where(kind == Kind.DELIVER).join(f.broadcast(dead), ["msg_id", "group"])
    late = deliveries.where(f.col("ts") > f.col("from_ts") + evidence.options.skew_us)
    first = Window.partitionBy("msg_id", "group").orderBy("ts", "node", "seq")
    late = (
        late.withColumn("nth", f.row_number().over(first)).where("nth = 1").withColumn("to_ts", f.col("ts"))
    )
    return findings(
        explain(late, evidence, _CAUSES),
        INVARIANT,
        "error",
        rule=f.lit(DELIVERED),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.lit("delivered to the group after it became a dead letter of that group"),
    )


CHECK: Final = Check(
    INVARIANT,
    (DROPPED, DELIVERED),
    retry_then_dead_letter,
    examined_tallies(*_TALLIES, *event_tallies(Kind.RETRY)),
    never_unknown,
    needs=_TALLIES,
)
