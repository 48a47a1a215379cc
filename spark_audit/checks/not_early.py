"""DELIV-8 NotEarly: a delayed message is not delivered before its time, by the broker's clock.

A broker appends a delayed message to its schedule topic, in the queue of its level. When the message is due,
the broker appends it to the message's own topic. By the broker's clock, this must not happen before the delay
of the level has passed since the record was stamped. If the first event does not give the stamp, it is
assumed to be the event's time less the allowed clock skew.

Slaves and other members of a group copy the appends of their master. If several brokers have a record, the
first one to have it is judged, by two clocks.

Cannot conclude: anything about brokers with a delay ladder of their own (unless it is given), about timers of
5.x, about a message that is repeated after a crash, or about whether a message was late.
"""

from typing import Final

from mqproof.spark_audit.checks.check import (
    BEFORE_LOG,
    Check,
    examined_tallies,
    explain,
    findings,
    is_sent_before_log,
    never_unknown,
)
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX, SCHEDULE_TOPIC
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-8"
RULE: Final = "early"

_DEAD_LETTERS_PREFIX: Final = "%DLQ%"

_RECORD: Final = ("msg_id", "topic", "queue_id", "queue_offset", "commit_offset")
_MILLISECOND_US: Final = 1000


def not_early(evidence: Evidence) -> DataFrame:
    appends = evidence.events.where(f.col("kind") == Kind.APPEND)
    waits = f.col("topic") == SCHEDULE_TOPIC
    stamped = evidence.log.where((f.col("kind") == Kind.APPEND) & waits).select(
        "node", "seq", "msg_id", (f.col("attrs")["stored_ms"].try_cast("long") * 1000).alias("stamp")
    )
    of_delayed = appends.join(stamped.select("node", "msg_id").distinct(), ["node", "msg_id"], "left_semi")
    of_delayed = of_delayed.join(stamped.drop("msg_id"), ["node", "seq"], "left")
    by_seq = Window.partitionBy("node", "msg_id").orderBy("seq")
    # A message that was sent without delay waits only for its next retry, which appends it to the retry
    # topic.
    is_sent_delayed = f.first(waits).over(by_seq)
    is_try = f.col("topic").startswith(RETRY_TOPIC_PREFIX)
    is_dead = f.col("topic").startswith(_DEAD_LETTERS_PREFIX)
    known = of_delayed.withColumn("came", is_try | (is_sent_delayed & ~waits & ~is_dead))
    delays = f.array(*[f.lit(delay * 1000).cast("long") for delay in evidence.options.delays_ms])
    stamp = f.coalesce("stamp", f.col("ts") - evidence.options.skew_us)
    dues = f.array_sort(f.collect_list(f.when(waits, stamp + f.get(delays, "queue_id"))).over(by_seq))
    # Several groups may wait for one message, and a repeated send is delayed twice. So the n-th append needs
    # n due times.
    count = f.sum(f.col("came").cast("int")).over(by_seq)
    timed = known.withColumn("due_ts", f.get(dues, count - 1)).withColumn(
        "from_ts", f.min(f.when(f.col("came"), f.col("ts"))).over(by_seq)
    )
    copies = Window.partitionBy(*_RECORD)
    came = timed.where("came").select(
        "*",
        f.min(f.struct("ts", "node")).over(copies)["node"].alias("first_node"),
        f.when(f.min("node").over(copies) < f.max("node").over(copies), evidence.options.skew_us)
        .otherwise(0)
        .alias("skew_us"),
    )
    # Store times are truncated to milliseconds.
    early = came.where(f"ts < due_ts - {_MILLISECOND_US} - skew_us")
    early = early.withColumn("early_ms", ((f.col("due_ts") - f.col("ts")) / _MILLISECOND_US).cast("long"))
    # Messages appended before a crash may be repeated. After a leader change, one of the copies shows the
    # cause.
    causes = explain(early.withColumn("to_ts", f.col("ts")), evidence, ("broker_crash",))
    known = _before_log(causes.withColumn("cause", f.max("cause").over(copies)), evidence)
    return findings(
        known.where("node = first_node"),
        INVARIANT,
        "error",
        rule=f.lit(RULE),
        first_ts="from_ts",
        last_ts="ts",
        evidence=f.format_string("its broker released it %d ms too early", "early_ms"),
    )


def _before_log(early: DataFrame, evidence: Evidence) -> DataFrame:
    """Add the cause `before_log` where the log may lack the first appends of the message.

    An append would then be compared with the time of a later delay.
    """
    if evidence.complete_from is None:
        return early
    kinds = f.col("kind").isin(Kind.SEND, Kind.APPEND)
    plain = (f.col("kind") == Kind.SEND) | ~f.col("topic").startswith("%")
    rows = evidence.events.where(kinds & (f.col("topic") != SCHEDULE_TOPIC)).join(
        f.broadcast(early.select("msg_id").distinct()), "msg_id", "left_semi"
    )
    begun = rows.groupBy("msg_id").agg(f.min(f.when(plain, f.col("ts"))).alias("send_ts"))
    cause = f.coalesce("cause", f.when(is_sent_before_log(evidence), f.lit(BEFORE_LOG)))
    return early.join(f.broadcast(begun), "msg_id", "left").withColumn("cause", cause)


CHECK: Final = Check(
    INVARIANT,
    (RULE,),
    not_early,
    examined_tallies("scheduled_appends"),
    never_unknown,
    needs=("scheduled_appends",),
)
