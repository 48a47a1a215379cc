"""DELIV-3 DuplicatesExplained: a repeated delivery has a cause.

A second delivery of the same place to a group needs one of these events between the two deliveries: a
rebalance, a restart of a consumer, a broker crash, an offset reset or a redelivery. A delivery to another
member is also explained by the rebalance window around both (as in DELIV-6): until a group agrees, two
members may own a queue.

A message at several places needs a producer that tried more than once, a redelivery through the group's retry
topic, or a broker that put a delayed message twice into its topic. The broker may do so after a crash, since
it saves its progress only periodically. It may also do so if it did not learn in time that its group has the
message, or if the group changed its leader. Both may happen before members report the first copy.

Some clients repeat a send without an event, as their `register` event says (cause `hidden_retry`).

If a queue has two owners at once, its messages are delivered twice: a consequence of what OneOwner reports
(cause `two_owners`).

An id belongs to one producer.

Cannot conclude: which of several causes it was; the first that fits is counted.
"""

from typing import Final

from mqproof.spark_audit.checks.check import (
    BEFORE_LOG,
    Check,
    examined_tallies,
    explain,
    findings,
    is_sent_before_log,
    unknown_without,
)
from mqproof.spark_audit.checks.one_owner import with_owners
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX, SCHEDULE_TOPIC, WAITING_TOPICS
from mqproof.spec.events import Kind

INVARIANT: Final = "DELIV-3"
DELIVERY: Final = "duplicate-delivery"
OFFSET: Final = "duplicate-offset"
REUSED: Final = "msgid-reused"

HIDDEN_RETRY: Final = "hidden_retry"

_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset")


def duplicates_explained(evidence: Evidence) -> DataFrame:
    # If there are as many deliveries as groups, none is repeated. Only the other messages are examined in
    # detail.
    ambiguous = evidence.messages.where(f.col("deliveries") > f.size("groups")).select(
        "msg_id", "sends", "attempt_max", "send_ts"
    )
    deliveries = (
        evidence.ambiguous_events.where(f.col("kind") == Kind.DELIVER)
        .select("msg_id", "group", "client", "node", "ts", "seq", *_PLACE)
        .join(ambiguous, "msg_id")
    )
    return (
        _same_place(deliveries, evidence)
        .unionByName(_several_places(deliveries, evidence))
        .unionByName(_reused(evidence.messages))
    )


def _reused(messages: DataFrame) -> DataFrame:
    """Return a finding for each message id that several producers sent.

    Different messages then share the id, so their deliveries look like duplicates of one message.
    """
    return findings(
        messages.where("producers > 1"),
        INVARIANT,
        "error",
        rule=f.lit(REUSED),
        first_ts="send_ts",
        last_ts="send_ts",
        evidence=f.format_string("sent by %d producers: the id does not identify one message", "producers"),
    )


def _same_place(deliveries: DataFrame, evidence: Evidence) -> DataFrame:
    in_order = Window.partitionBy("msg_id", "group", *_PLACE).orderBy("ts", "node", "seq")
    last = {"from_ts": f.lag("ts").over(in_order), "from_node": f.lag("node").over(in_order)}
    repeated = deliveries.withColumns(last).where("from_ts IS NOT NULL").withColumn("to_ts", f.col("ts"))
    window = f.when(f.col("node") != f.col("from_node"), evidence.options.rebalance_us).otherwise(0)
    causes = ("redelivery", "rebalance", "consumer_restart", "broker_crash", "offset_reset")
    explained = explain(repeated, evidence, causes, around={"rebalance": window})
    # One member that receives a message twice does not need another owner for it.
    is_shared = f.col("node") != f.col("from_node")
    return findings(
        _once(with_owners(explained, evidence, only=is_shared), _PLACE),
        INVARIANT,
        "error",
        rule=f.lit(DELIVERY),
        evidence=f.format_string("delivered to the group again (%d more), and no cause explains it", "times"),
    )


def _several_places(deliveries: DataFrame, evidence: Evidence) -> DataFrame:
    spread = deliveries.groupBy("msg_id", "group").agg(
        *[
            _if_one(f.when(_is_in_topic(in_retry=False), f.col(name))).alias(name)
            for name in ("broker", "topic", "queue_id")
        ],
        f.countDistinct(_place(in_retry=False)).alias("places_own"),
        f.countDistinct(_place(in_retry=True)).alias("places_retry"),
        f.max("sends").alias("sends"),
        f.max("attempt_max").alias("attempt_max"),
        f.min("send_ts").alias("send_ts"),
        f.max("client").alias("client"),
        f.min("ts").alias("from_ts"),
        f.max("ts").alias("to_ts"),
    )
    spread = spread.where("places_own > 1 OR places_retry > 0").withColumn("times", f.col("places_own"))
    spread = explain(spread, evidence, ("redelivery",)).join(_delayed_copies(evidence), "msg_id", "left")
    spread = spread.join(_maybe_repeated(evidence), "msg_id", "left")
    is_retried = (f.col("attempt_max") > 1) | (f.col("sends") > 1)
    copied = f.when(is_retried, f.lit("producer_retry")).otherwise(f.coalesce("copied", "hidden"))
    own = f.when(f.col("places_own") > 1, copied).otherwise(f.lit("redelivery"))
    # Copies in the topic come from the producer or broker, copies in the retry topic from the consumer. Each
    # needs its own cause.
    cause = f.when((f.col("places_retry") == 0) | f.col("cause").isNotNull(), own)
    # The failure or the first attempt may be older than the first copy that the log has.
    cause = f.coalesce(cause, f.when(is_sent_before_log(evidence), f.lit(BEFORE_LOG)))
    return findings(
        spread.withColumn("cause", cause),
        INVARIANT,
        "error",
        rule=f.lit(OFFSET),
        first_ts="from_ts",
        last_ts="to_ts",
        evidence=f.format_string(
            "delivered at %d offsets of its topic and %d of the retry topic, without a cause",
            "places_own",
            "places_retry",
        ),
    )


def _maybe_repeated(evidence: Evidence) -> DataFrame:
    """Return msg_id and the cause `hidden`: messages that a client may have sent again without an event."""
    stated = (f.col("kind") == Kind.REGISTER) & f.col("attrs")["retries"].isNotNull()
    nodes = evidence.rare.where(stated).select(f.col("node").alias("of_node")).distinct()
    sends = evidence.ambiguous_events.where(f.col("kind") == Kind.SEND).select("msg_id", "node")
    repeated = sends.join(f.broadcast(nodes), f.col("node") == f.col("of_node"), "left_semi")
    return repeated.select("msg_id").distinct().withColumn("hidden", f.lit(HIDDEN_RETRY))


def _delayed_copies(evidence: Evidence) -> DataFrame:
    """Return delayed messages that their broker appended to their topic more than once, with a cause."""
    appends = evidence.ambiguous_events.where(f.col("kind") == Kind.APPEND)
    delays = f.array(*[f.lit(delay * 1000).cast("long") for delay in evidence.options.delays_ms])
    delayed = appends.where(f.col("topic").isin(*WAITING_TOPICS))
    # Logs do not have the times of timers: one is due at its first append at the earliest.
    delay = f.when(f.col("topic") == SCHEDULE_TOPIC, f.get(delays, "queue_id")).otherwise(0)
    dues = delayed.groupBy("msg_id", "broker").agg(f.min(f.col("ts") + delay).alias("due"))
    copies = appends.where(~f.col("topic").isin(*WAITING_TOPICS)).join(dues, ["msg_id", "broker"])
    spans = copies.groupBy("msg_id", "broker").agg(
        f.min("ts").alias("first"),
        f.least(f.min("ts"), f.min("due")).alias("due"),
        f.max("ts").alias("to_ts"),
    )
    spans = spans.where("first < to_ts")
    after_crash = explain(
        spans.withColumnRenamed("first", "from_ts").drop("due"), evidence, ("broker_crash",)
    )
    after_retry = explain(
        spans.withColumnRenamed("due", "from_ts").drop("first"), evidence, ("broker_retry", "leader_change")
    )
    known = after_crash.unionByName(after_retry).where("cause IS NOT NULL")
    return known.groupBy("msg_id").agg(f.min("cause").alias("copied"))


def _if_one(values: Column) -> Column:
    """Return the common value, or null if the values differ."""
    return f.when(f.min(values) == f.max(values), f.min(values))


def _place(*, in_retry: bool) -> Column:
    return f.when(_is_in_topic(in_retry=in_retry), f.concat_ws("\x1f", *_PLACE))


def _is_in_topic(*, in_retry: bool) -> Column:
    """Return whether a delivery is from the group's retry topic, or from the message's own topic."""
    is_retry = f.col("topic").startswith(RETRY_TOPIC_PREFIX)
    return is_retry if in_retry else ~is_retry


def _once(repeats: DataFrame, place: tuple[str, ...]) -> DataFrame:
    """Return one finding for each message, group, place and cause, with the number of repetitions."""
    return repeats.groupBy("msg_id", "group", *place, "cause").agg(
        f.count(f.lit(1)).alias("times"),
        f.max("client").alias("client"),
        f.min("from_ts").alias("first_ts"),
        f.max("to_ts").alias("last_ts"),
    )


CHECK: Final = Check(
    INVARIANT,
    (DELIVERY, OFFSET, REUSED),
    duplicates_explained,
    examined_tallies("deliveries", "messages_delivered", "groups"),
    unknown_without("messages_delivered", "no delivery is in the log"),
    certain=(REUSED,),
)
