"""DELIV-8 NotEarly: a delayed message is not delivered before its time, by the broker's clock.

A broker appends what is delayed to its schedule topic, in the queue of its level, and appends it again where
it belongs when it is due: not before the level's time has passed, as both events are timed by one clock.
Cannot conclude: anything about brokers that have a ladder of their own (unless it is stated), about timers
of 5.x, or about whether a message came late.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_audit.checks.check import Check, counted, findings, never_blind
from spark_audit.evidence import Evidence
from spec.events import Kind

INVARIANT: Final = "DELIV-8"
RULE: Final = "early"

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"

_MILLISECOND_US: Final = 1000


def not_early(evidence: Evidence) -> DataFrame:
    appends = evidence.events.where(f.col("kind") == Kind.APPEND)
    delayed = appends.where(f.col("topic") == SCHEDULE_TOPIC).select("node", "msg_id").distinct()
    of_delayed = appends.join(delayed, ["node", "msg_id"], "left_semi")
    came = f.col("topic") != SCHEDULE_TOPIC
    by_seq = Window.partitionBy("node", "msg_id").orderBy("seq")
    before = by_seq.rowsBetween(Window.unboundedPreceding, -1)
    # Delayed again and again, a message has a round for each time it came. A producer that tried twice has it
    # delayed twice in one round: then the earlier time counts.
    rounds = of_delayed.withColumn("came", came).withColumn(
        "round", f.coalesce(f.sum(f.when(came, 1).otherwise(0)).over(before), f.lit(0))
    )
    ladder = f.array(*[f.lit(delay * 1000).cast("long") for delay in evidence.options.delays_ms])
    due = f.when(~f.col("came"), f.col("ts") + f.get(ladder, "queue_id"))
    in_round = Window.partitionBy("node", "msg_id", "round")
    known = rounds.withColumn("due_ts", f.min(due).over(in_round)).withColumn(
        "from_ts", f.min(f.when(~f.col("came"), f.col("ts"))).over(in_round)
    )
    # Store times are milliseconds, cut off.
    early = known.where(f"came AND ts < due_ts - {_MILLISECOND_US}").withColumn(
        "early_ms", ((f.col("due_ts") - f.col("ts")) / _MILLISECOND_US).cast("long")
    )
    return findings(
        early,
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="ts",
        evidence=f.format_string("its broker let it go %d ms before its time", "early_ms"),
    )


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    not_early,
    counted("scheduled_appends"),
    never_blind,
    needs=("scheduled_appends",),
)
