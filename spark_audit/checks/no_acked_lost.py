"""DELIV-1 NoAckedLost: a message acknowledged with SEND_OK is delivered to every subscribed group.

A message is lost if its record was truncated by recovery. It is also lost if a later offset of the queue was
delivered to the group and this message never was.

These are not lost, or have a cause:

- Messages beyond the group's last delivered offset are in flight (cause `unseen`).
- So are messages sent before the group's first delivery in the topic, since a group may start at the end of a
  queue.
- A half message is due to no group before it is committed.
- A message that the group's subscription does not select is not due to it (cause `filtered`).
- Offsets that an explicit reset jumped over were skipped on purpose (cause `offset_reset`).
- A message whose delivery a member of the group may have dropped from its log has the cause `gap`.
- A record that an ASYNC_FLUSH broker lost in a crash is outside the guarantee (cause `async_flush`).
- A lost message that was answered FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE is counted
  under that status.

The rule `offset-ahead` finds a committed offset, reported by a broker or held in a store, that lies beyond
everything the broker ever appended to the queue. With store directories, acknowledged messages must be
stored, delivered or not (acked_in_store.py), and their brokers must know their topics (topics_known.py).

Cannot conclude: whether a message was due to a group, if neither the log nor the user states its
subscription (cause `subscription_unknown`), if the message's tags are unknown (`tags_unknown`), if the group
subscribes by SQL92 and the message's properties are unknown (`properties_unknown`), if it filters in another
way (`filter_not_evaluated`), or if its subscription changed while the message waited
(`subscription_changed`).
"""

from collections.abc import Mapping
from typing import Final

from mqproof.spark_audit.checks.acked_in_store import ABSENT, not_in_store
from mqproof.spark_audit.checks.check import (
    PLACE,
    Check,
    at_sole_place,
    examined_tallies,
    findings,
    is_in_passed_gap,
)
from mqproof.spark_audit.checks.offsets_ahead import AHEAD, ahead_of_appends, ahead_of_store
from mqproof.spark_audit.checks.topics_known import METADATA, topics_unknown
from mqproof.spark_audit.checks.truncated_messages import with_outcome
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.gaps import GAP
from mqproof.spark_audit.evidence.groups import is_member, subscribed, subscribing_group
from mqproof.spark_audit.evidence.places import group_name
from mqproof.spark_audit.evidence.subscriptions import (
    FILTERED,
    changing,
    unsure,
    with_selection,
    with_stored_tags,
)
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.profile import is_reset
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-1"
LOST: Final = "lost-write"
TRUNCATED: Final = "acked-then-truncated"


def no_acked_lost(evidence: Evidence) -> DataFrame:
    lost = lost_to_groups(evidence, INVARIANT)
    # Messages that a member of a broadcast group missed are judged by BroadcastToAll.
    found = lost.where(~(is_member(evidence.options) & (f.col("rule") == LOST)))
    found = found.unionByName(ahead_of_appends(evidence, INVARIANT))
    if evidence.store is None:
        return found
    return (
        found.unionByName(not_in_store(evidence, INVARIANT))
        .unionByName(ahead_of_store(evidence.store, INVARIANT))
        .unionByName(topics_unknown(evidence.store, INVARIANT))
    )


def lost_to_groups(evidence: Evidence, invariant: str) -> DataFrame:
    """Return findings for acknowledged messages that were never delivered to a group of their topic."""
    missing = _missing(evidence)
    unprotected = f.coalesce(f.col("weak"), f.when(f.col("is_async"), f.lit("async_flush")))
    truncated = missing.where("is_gone").select(
        "*", f.lit(TRUNCATED).alias("rule"), unprotected.alias("cause"), *_places("own")
    )
    passed = _passed_over(missing.where("NOT is_gone"), evidence)
    columns = ("msg_id", "group", "topic", *PLACE, "acked_ts", "rule", "cause")
    return findings(
        truncated.select(*columns).unionByName(passed.select(*columns)),
        invariant,
        "critical",
        first_ts="acked_ts",
        last_ts="acked_ts",
        evidence=f.when(
            f.col("rule") == TRUNCATED, f.lit("acknowledged with SEND_OK, then cut off by recovery")
        ).otherwise(
            f.lit(
                "acknowledged with SEND_OK; the group received later offsets of the queue, but not this one"
            )
        ),
    )


def _missing(evidence: Evidence) -> DataFrame:
    """Return one row for each acknowledged message and group of its topic to which it was never delivered."""
    stored = with_outcome(evidence.messages.where("acked + soft_acked > 0 AND (halves = 0 OR commits > 0)"))
    # Every status other than SEND_OK names what was not reached: such a loss is counted under it, not as a
    # violation.
    weak = f.when(f.col("acked") == 0, f.lower("soft_status"))
    acked = stored.withColumn("weak", weak).join(
        f.broadcast(subscribed(evidence.spans)), f.col("topic") == f.col("subscribed_topic"), "left"
    )
    undelivered = acked.withColumn("lacking", f.array_except("subscribed", "groups"))
    # A truncated record is lost even if no group reads the topic.
    no_group = f.array(f.lit(None).cast("string"))
    unread = f.col("subscribed").isNull() & f.col("is_gone")
    undelivered = undelivered.withColumn("lacking", f.when(unread, no_group).otherwise(f.col("lacking")))
    return undelivered.where(f.size("lacking") > 0).withColumn("group", f.explode("lacking"))


def _passed_over(missing: DataFrame, evidence: Evidence) -> DataFrame:
    """Return rule, cause and place for each missing (msg_id, group).

    The cause is null if the group passed every place of the message.
    """
    at = missing.withColumn("at", f.explode_outer("places")).select(
        "msg_id",
        "group",
        "topic",
        "acked_ts",
        "weak",
        "tags",
        f.col("at.broker"),
        f.col("at.queue_id"),
        "at.queue_offset",
    )
    delivered = evidence.spans.where(f.col("kind") == Kind.DELIVER)
    at = _with_consumers_broker_name(at, delivered, evidence.profile)
    reach = delivered.groupBy("group", "broker", "topic", "queue_id").agg(
        f.min("offset_min").alias("reach_min"),
        f.max("offset_max").alias("reach_max"),
        f.max("last_ts").alias("reached_ts"),
    )
    started = delivered.groupBy("group", "topic").agg(f.min("first_ts").alias("started_ts"))
    at = at.join(f.broadcast(reach), ["group", "broker", "topic", "queue_id"], "left").join(
        f.broadcast(started), ["group", "topic"], "left"
    )
    # The producer's clock may be ahead of the consumer's.
    begun = f.col("started_ts") + evidence.options.skew_us
    in_reach = (f.col("queue_offset") > f.col("reach_min")) | (f.col("acked_ts") >= begun)
    at = at.join(f.broadcast(_forward_resets(evidence)), ["group", "broker", "topic", "queue_id"], "left")
    passed = (f.col("queue_offset") < f.col("reach_max")) & in_reach
    skipped = f.exists(
        "resets",
        lambda reset: (reset["from"] <= f.col("queue_offset")) & (f.col("queue_offset") < reset["to"]),
    )
    at = at.withColumn(
        "cause", f.when(skipped, f.lit("offset_reset")).when(passed, f.lit(None)).otherwise(f.lit("unseen"))
    )
    at = _with_passing(at, evidence)
    judged = at.groupBy("msg_id", "group").agg(
        f.first("topic").alias("topic"),
        f.collect_set(f.struct(*PLACE)).alias("called"),
        f.min("acked_ts").alias("acked_ts"),
        # Lost only if every place was passed; a place that is still ahead keeps the message in flight.
        f.max("cause").alias("cause"),
        f.max("weak").alias("weak"),
        f.max("tags").alias("tags"),
        f.min("acked_ts").alias("since_ts"),
        f.max(f.coalesce("passed_ts", "reached_ts")).alias("until_ts"),
    )
    judged = with_selection(with_stored_tags(judged, evidence), evidence)
    not_due = f.when(f.col("selection") == FILTERED, f.col("selection"))
    in_gap = f.when(is_in_passed_gap(evidence), f.lit(GAP))
    judged = judged.withColumn("cause", f.coalesce("cause", not_due, "weak", "selection", in_gap))
    return judged.select("*", f.lit(LOST).alias("rule"), *_places("called"))


def _with_passing(at: DataFrame, evidence: Evidence) -> DataFrame:
    """Add passed_ts: by then the group had read past the place.

    It is needed only for subscriptions that change, or if nodes dropped rows.

    A consumer that leaves out an offset makes a step over it, to a later one.
    """
    columns = ("group", "broker", "topic", "queue_id", "queue_offset")
    same = (subscribing_group(evidence.options) == f.col("sub_group")) & (
        f.col("topic") == f.col("sub_topic")
    )
    changed = f.broadcast(changing(evidence))
    steps = evidence.steps.where(f.col("kind") == Kind.DELIVER).select(*columns, f.col("ts").alias("step_ts"))
    points = at.where(f.col("cause").isNull()).select(*columns, f.lit(None).cast("bigint").alias("step_ts"))
    marked = steps.withColumn("is_step", f.lit(True)).unionByName(points.withColumn("is_step", f.lit(False)))
    downwards = Window.partitionBy(*columns[:-1]).orderBy(f.lit(0) - f.col("queue_offset"))
    beyond = downwards.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    needed = marked if evidence.gaps else marked.join(changed, same, "left_semi")
    passed = needed.withColumn("passed_ts", f.min("step_ts").over(beyond))
    passed = passed.where("NOT is_step").groupBy(*columns).agg(f.min("passed_ts").alias("passed_ts"))
    return at.join(passed, [*columns], "left")


def _places(column: str) -> list[Column]:
    """Return the message's place, with the broker name that clients use; null if there are several places."""
    return [place.alias(name) for name, place in at_sole_place(column).items()]


def _with_consumers_broker_name(at: DataFrame, delivered: DataFrame, profiled: DataFrame) -> DataFrame:
    """Rename places at slaves and members of groups to the broker name that clients use.

    The broker name of a member has no log of its own. A slave has the message at the same place as the broker
    of that name. Otherwise the two are separate brokers with similar names.
    """
    named = f.broadcast(delivered.select(f.col("broker").alias("called")).distinct())
    group_names = named.withColumnRenamed("called", "theirs")
    called = at.join(named, f.col("broker") == f.col("called"), "left").join(
        group_names, group_name(f.col("broker")) == f.col("theirs"), "left"
    )
    logs = profiled.where(f.col("kind") == Kind.APPEND).select(f.col("node").alias("its_log")).distinct()
    called = called.join(f.broadcast(logs), f.col("theirs") == f.col("its_log"), "left")
    name = f.coalesce("called", "theirs", "broker")
    same = Window.partitionBy("msg_id", "group", name, "queue_id", "queue_offset")
    is_copy = f.col("its_log").isNull() | (f.min("broker").over(same) < f.max("broker").over(same))
    broker = f.when(is_copy, name).otherwise(f.col("broker"))
    return called.withColumn("broker", broker).drop("called", "theirs", "its_log")


def _forward_resets(evidence: Evidence) -> DataFrame:
    """Return, for each queue of a group, the ranges [from, to) that explicit resets skipped."""
    stretch = f.struct(
        f.col("attrs")["previous"].cast("long").alias("from"), f.col("queue_offset").alias("to")
    )
    chosen = evidence.rare.where(is_reset())
    return chosen.groupBy("group", "broker", "topic", "queue_id").agg(f.collect_list(stretch).alias("resets"))


def _unknown_reason(tallies: Mapping[str, int], causes: Mapping[str, int]) -> str:
    if not tallies["acked"]:
        return "no message was acknowledged with SEND_OK"
    if not tallies["acked_and_delivered"]:
        return "no acknowledged message was delivered"
    if not tallies["groups"]:
        # What a group has passed is only known by places.
        return "no delivery to a group names its queue and offset"
    return unsure(causes)


CHECK: Final = Check(
    INVARIANT,
    (LOST, TRUNCATED, ABSENT, AHEAD, METADATA),
    no_acked_lost,
    examined_tallies("acked", "acked_and_delivered", "groups"),
    _unknown_reason,
    of_stores=True,
    certain=(ABSENT, AHEAD, METADATA),
)
