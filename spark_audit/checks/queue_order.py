"""DELIV-4 QueueOrder: a queue is delivered to each consumer in offset order, without skipping any.

Each consumer is judged by its own sequence numbers, so clocks do not matter. A step back or a jump is legal
after a rebalance, a restart of the consumer, a crash of the broker, a reset of the offset or the deletion of
the topic. A step back is also legal to a message that failed and has not been sent back since: its consumer
retries it from memory (`redelivery`). A consumer whose listener runs in several threads receives the messages
of a queue in any order (`several_threads`); DELIV-3 judges whether one of them was delivered again.

An offset exists if it was delivered to some consumer. Offsets that were never delivered are judged by
NoAckedLost. An offset that only other groups received counts if the subscription of the consumer's group
selects its message; the causes of NoAckedLost say where that is unknown. A jump is a consequence, if the
queue had two owners at once and the other one received the message (`two_owners`, see OneOwner).

Cannot conclude: whether an orderly consumer overlapped within a queue (deliveries have no end in the log).
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.check import Check, examined_tallies, explain, findings
from mqproof.spark_audit.checks.one_owner import NOT_REPORTED, TWO_OWNERS, with_owners
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.groups import subscribing_group
from mqproof.spark_audit.evidence.subscriptions import FILTERED, unsure, with_selection, with_stored_tags
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-4"
BACK: Final = "nonmonotonic-poll"
SKIP: Final = "poll-skip"

SEVERAL_THREADS: Final = "several_threads"

GAP_MAX: Final = 10_000
"""Maximum number of offsets that are looked up for one jump.

A jump over a million offsets does not need a million rows of evidence.
"""

_QUEUE: Final = ("broker", "topic", "queue_id")
_CAUSES: Final = ("rebalance", "consumer_restart", "broker_crash", "offset_reset", "topic_deleted")
_ENDS: Final = (Kind.CONSUME_OK, Kind.CONSUME_FAIL, Kind.RETRY, Kind.DEAD_LETTER)
"""Kinds of events that a consumer reports about a delivered message."""


def queue_order(evidence: Evidence) -> DataFrame:
    irregular = evidence.steps.where(f.col("kind") == Kind.DELIVER)
    irregular = explain(irregular.withColumn("to_ts", f.col("ts")), evidence, _CAUSES)
    back = _redelivered(irregular.where(f.col("queue_offset") < f.col("previous")), evidence)
    back = _in_threads(back, evidence)
    jumps = irregular.where((f.col("queue_offset") > f.col("previous")) & f.col("cause").isNull())
    return _backwards(back).unionByName(_skipped(jumps, evidence))


def _redelivered(back: DataFrame, evidence: Evidence) -> DataFrame:
    """Add the cause `redelivery` to messages that failed and about which the consumer reported nothing more.

    The consumer could not send them back and kept them. Reports about another copy of the message do not
    count.
    """
    kind, names = f.col("kind"), ("node", "group", "msg_id", *_QUEUE, "queue_offset")
    ends = evidence.failure_events.where(kind.isin(*_ENDS)).select(
        *names, f.col("seq").alias("end_seq"), (kind == Kind.CONSUME_FAIL).alias("failed")
    )
    last = (
        back.select(*names, "seq")
        .join(ends, [*names])
        .where("end_seq < seq")
        .groupBy(*names, "seq")
        .agg(f.max_by("failed", "end_seq").alias("is_kept"))
    )
    cause = f.coalesce("cause", f.when(f.col("is_kept"), f.lit("redelivery")))
    return back.join(last, [*names, "seq"], "left").withColumn("cause", cause)


def _in_threads(back: DataFrame, evidence: Evidence) -> DataFrame:
    """Add the cause `several_threads` to steps back of a member whose listener runs in several threads."""
    threads = f.col("attrs")["threads"]
    members = evidence.rare.where((f.col("kind") == Kind.SUBSCRIBE) & (threads != "1")).select(
        f.col("node").alias("its_node"), f.col("group").alias("its_group")
    )
    same = (f.col("node") == f.col("its_node")) & (subscribing_group(evidence.options) == f.col("its_group"))
    threaded = back.join(f.broadcast(members.distinct()), same, "left")
    cause = f.when(f.col("its_node").isNotNull(), f.lit(SEVERAL_THREADS))
    return threaded.withColumn("cause", f.coalesce("cause", cause)).drop("its_node", "its_group")


def _backwards(back: DataFrame) -> DataFrame:
    return findings(
        back,
        INVARIANT,
        "error",
        rule=f.lit(BACK),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.format_string("received offset %d after %d", "queue_offset", "previous"),
    )


def _skipped(jumps: DataFrame, evidence: Evidence) -> DataFrame:
    deliveries = evidence.events.where(f.col("kind") == Kind.DELIVER)
    last = f.least(f.col("queue_offset") - 1, f.col("previous") + GAP_MAX)
    skipped = jumps.select(
        f.col("node").alias("by_node"),
        f.col("client").alias("by_client"),
        f.col("group").alias("by_group"),
        *_QUEUE,
        "from_ts",
        "to_ts",
        (f.col("previous") + 1).alias("gap_begin"),
        last.alias("gap_end"),
    )
    # Join by coarse offsets, so that the few jumps are broadcast to the many deliveries.
    skipped = skipped.withColumn("coarse", f.explode(f.sequence(_coarse("gap_begin"), _coarse("gap_end"))))
    in_gap = deliveries.withColumn("coarse", _coarse("queue_offset")).join(
        f.broadcast(skipped), [*_QUEUE, "coarse"]
    )
    same_consumer = f.col("node").eqNullSafe(f.col("by_node")) & f.col("group").eqNullSafe(f.col("by_group"))
    by_offset = in_gap.where("queue_offset BETWEEN gap_begin AND gap_end").groupBy(
        "by_node", "by_group", *_QUEUE, "queue_offset", "from_ts", "to_ts"
    )
    other_member = f.col("group").eqNullSafe(f.col("by_group")) & ~same_consumer
    known = by_offset.agg(
        f.max("by_client").alias("client"),
        f.max("msg_id").alias("msg_id"),
        f.max(f.when(_is_of_group(evidence), 1).otherwise(0)).alias("was_due"),
        # If this consumer got the offset before or after, it did not skip it: that is a step back, found by
        # the other rule.
        f.max(f.when(same_consumer, 1).otherwise(0)).alias("had_it"),
        f.max(f.when(other_member, 1).otherwise(0)).alias("other_had_it"),
    )
    rows = known.where("had_it = 0").withColumnRenamed("by_group", "group")
    # A message that a group never received is not clean, so it has a row with its tags.
    rows = rows.join(evidence.messages.select("msg_id", "tags"), "msg_id", "left")
    # A consumer may have read past the offset any time before it received the next one.
    since = {"since_ts": f.lit(None).cast("bigint"), "until_ts": f.col("to_ts")}
    judged = with_selection(with_stored_tags(rows.withColumns(since), evidence), evidence)
    judged = judged.withColumn("cause", f.when(f.col("was_due") == 0, f.col("selection")))
    due = judged.where(f.col("cause").isNull() | (f.col("cause") != FILTERED))
    # What no member of the group received was not skipped because of another owner.
    only = f.col("other_had_it") == 1
    return findings(
        with_owners(due, evidence, (TWO_OWNERS, NOT_REPORTED), only),
        INVARIANT,
        "error",
        rule=f.lit(SKIP),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.lit("skipped this offset, which other consumers received"),
    )


def _is_of_group(evidence: Evidence) -> Column:
    """Return whether a delivery is one to the group of the row that skipped its offset."""
    return subscribing_group(evidence.options, "group").eqNullSafe(
        subscribing_group(evidence.options, "by_group")
    )


def _coarse(name: str) -> Column:
    return f.shiftright(name, 10)


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    if causes.get(NOT_REPORTED):
        return "members skipped what others received, in groups that report no rebalance"
    if not tallies["delivery_steps"]:
        return "no consumer received two messages of one queue"
    return unsure(causes)


CHECK: Final = Check(
    INVARIANT,
    (BACK, SKIP),
    queue_order,
    examined_tallies("delivery_steps", "consumer_queues"),
    _unknown_reason,
)
