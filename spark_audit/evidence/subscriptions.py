"""The subscriptions of groups over time, and whether one selects a message.

A `subscribe` event states what a group selects at its node until the node's next event about the same group
and topic. The broker and the members may state it, and all statements count. For logs without such events,
the user may state the subscription. Tag expressions are evaluated here; other types are not.
"""

from collections.abc import Mapping
from typing import Final

from mqproof.report.printable import counted
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame, Window
from mqproof.spark_audit.evidence.groups import subscribing_group
from mqproof.spark_audit.evidence.options import ANY, Options
from mqproof.spark_audit.evidence.sql_selection import SQL92
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX
from mqproof.spark_audit.sources.mapping.sql_expressions import INVALID
from mqproof.spec.events import Kind

FILTERED: Final = "filtered"
"""The cause of a missing delivery that the group's subscription does not select."""

_UNKNOWN: Final = "subscription_unknown"
NO_TAGS: Final = "tags_unknown"
NO_PROPERTIES: Final = "properties_unknown"
NOT_EVALUATED: Final = "filter_not_evaluated"
_CHANGED: Final = "subscription_changed"

_MISSING: Final = {
    _UNKNOWN: "the log has no subscribe event of the group, and --subscription does not state it",
    NO_TAGS: "the log does not have their tags",
    NO_PROPERTIES: "the group subscribes by SQL92, and the log lacks their properties (attrs.properties)",
    NOT_EVALUATED: "the group's subscription is not a valid expression of tags or SQL92",
    _CHANGED: "the group's subscription changed while the messages waited",
}
"""Maps each cause that leaves it open whether a message was due to what the audit needs to decide."""

_TAG: Final = "TAG"
_EVERYTHING: Final = "*"
_SEPARATOR: Final = "\x1f"


def unsure(causes: Mapping[str, int]) -> str:
    """Return why it is unknown whether messages were due, or ""; from the number of findings by cause."""
    found = [(causes[cause], why) for cause, why in _MISSING.items() if causes.get(cause)]
    return "; ".join(
        f"{counted(number, 'message')} may have been filtered out: {why}" for number, why in found
    )


def with_selection(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Add `selection`: null if the group's subscription selects the message, else a cause.

    The rows have group, topic, tags (null: unknown), and since_ts to until_ts, during which the group read
    past the message (null: unbounded). Subscriptions in effect at any time of this interval count.
    """
    options, columns = evidence.options, rows.columns
    known = f.broadcast(subscriptions(evidence))
    same = (subscribing_group(options) == f.col("sub_group")) & (f.col("topic") == f.col("sub_topic"))
    joined = _with_sql(rows, evidence).join(known, same, "left")
    begin, end = f.col("since_ts") - options.skew_us, f.col("until_ts") + options.skew_us
    effective = f.filter(
        "statements",
        lambda each: (
            f.coalesce(each["from_ts"] <= end, f.lit(True)) & f.coalesce(each["to_ts"] >= begin, f.lit(True))
        ),
    )
    judged = joined.withColumn("effective", effective).withColumn("selection", _selection())
    return judged.select(*columns, "selection")


def _with_sql(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Add `sql_selected`: the SQL92 expressions that select the message; null if they were not evaluated."""
    if evidence.sql_selected is None or "msg_id" not in rows.columns:
        return rows.withColumn("sql_selected", f.lit(None).cast("array<string>"))
    return rows.join(evidence.sql_selected, "msg_id", "left")


def with_stored_tags(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Complete the column `tags` with those of the records in the stores, if stores were given."""
    if evidence.store is None:
        return rows
    records = evidence.store.records.where(f.col("msg_id").isNotNull())
    stored = records.groupBy("msg_id").agg(f.max(f.coalesce("tags", f.lit(""))).alias("stored_tags"))
    joined = rows.join(stored, "msg_id", "left")
    return joined.withColumn("tags", f.coalesce("tags", "stored_tags")).select(*rows.columns)


def _selection() -> Column:
    selected = f.col("sql_selected")

    def is_sql(each: Column) -> Column:
        return each["type"] == SQL92

    def has_tags(each: Column) -> Column:
        return (each["type"] == _TAG) & each["wanted"].isNotNull()

    def selects(each: Column) -> Column:
        by_tag = each["wanted"].isNull() | f.array_contains(each["wanted"], f.col("tags"))
        return f.when(is_sql(each), f.array_contains(selected, each["expression"])).otherwise(by_tag)

    def is_invalid(each: Column) -> Column:
        marked = f.array_contains(selected, f.concat(f.lit(INVALID), each["expression"]))
        return ~each["type"].isin(_TAG, SQL92) | (is_sql(each) & f.coalesce(marked, f.lit(False)))

    is_unknown = f.coalesce(f.size("effective"), f.lit(0)) <= 0
    is_unknown = is_unknown | f.exists("effective", lambda each: each["type"].isNull())
    return (
        f.when(is_unknown, f.lit(_UNKNOWN))
        .when(f.exists("effective", is_invalid), f.lit(NOT_EVALUATED))
        .when(selected.isNull() & f.exists("effective", is_sql), f.lit(NO_PROPERTIES))
        .when(f.col("tags").isNull() & f.exists("effective", has_tags), f.lit(NO_TAGS))
        .when(f.forall("effective", selects), f.lit(None))
        .when(f.exists("effective", selects), f.lit(_CHANGED))
        .otherwise(f.lit(FILTERED))
    )


def subscriptions(evidence: Evidence) -> DataFrame:
    """Return sub_group, sub_topic and the array `statements`, for groups that received messages of a topic.

    A statement has from_ts and to_ts (null: unbounded), type (null: unknown), and the array `wanted` of tags,
    which is null for all messages. `statements` is null if nothing is known.
    """
    readers = _readers(evidence)
    stated = _stated(evidence.rare).join(
        f.broadcast(readers.select(f.col("sub_group").alias("group"), f.col("sub_topic").alias("topic"))),
        ["group", "topic"],
        "left_semi",
    )
    found = stated.groupBy("group", "topic").agg(
        f.collect_set("statement").alias("found"), f.min("first_ts").alias("stated_ts")
    )
    known = readers.join(
        f.broadcast(found),
        (f.col("group") == f.col("sub_group")) & (f.col("topic") == f.col("sub_topic")),
        "left",
    )
    # A group that received messages before the first statement had a subscription then, which is unknown.
    is_late = f.col("started_ts") < f.col("stated_ts") - evidence.options.skew_us
    before = f.array(_statement(None, f.col("stated_ts"), None, f.lit(None).cast("string")))
    found_column = f.when(is_late, f.concat("found", before)).otherwise(f.col("found"))
    given = _given(evidence.options)
    by_user = f.when(
        given.isNotNull(), f.array(_statement(None, f.lit(None).cast("bigint"), f.lit("TAG"), given))
    )
    return known.select("sub_group", "sub_topic", f.coalesce(found_column, by_user).alias("statements"))


def changing(evidence: Evidence) -> DataFrame:
    """Return sub_group and sub_topic of the subscriptions that are not the same all the time."""
    known = subscriptions(evidence)
    texts = f.transform(
        "statements", lambda each: f.coalesce(f.array_join(each["wanted"], _SEPARATOR), f.lit(_EVERYTHING))
    )
    return known.where(f.size(f.array_distinct(texts)) > 1).select("sub_group", "sub_topic")


def tag_filters(evidence: Evidence) -> DataFrame:
    """Return sub_group and sub_topic of the subscriptions that are filters, at least for some time."""
    is_filter = f.exists("statements", lambda each: each["wanted"].isNotNull())
    return subscriptions(evidence).where(f.coalesce(is_filter, f.lit(False))).select("sub_group", "sub_topic")


def deliveries_to_filters(evidence: Evidence) -> DataFrame:
    """Return the first deliveries of messages to the groups of `tag_filters`, with their tags and times.

    since_ts is when the message was first seen, and until_ts the time of the delivery.
    """
    filters = f.broadcast(tag_filters(evidence))
    same = (subscribing_group(evidence.options) == f.col("sub_group")) & (
        f.col("topic") == f.col("sub_topic")
    )
    kind = f.col("kind")
    delivered = evidence.events.where((kind == Kind.DELIVER) & f.col("msg_id").isNotNull())
    delivered = delivered.join(filters, same).drop("sub_group", "sub_topic")
    origins = evidence.events.where(kind.isin(Kind.SEND, Kind.APPEND) & f.col("msg_id").isNotNull())
    sent = origins.groupBy("msg_id").agg(f.max("tags").alias("sent_tags"), f.min("ts").alias("since_ts"))
    with_origin = delivered.join(sent, "msg_id", "left")
    tagged = with_origin.withColumn("tags", f.coalesce("tags", "sent_tags"))
    return with_stored_tags(tagged.withColumn("until_ts", f.col("ts")), evidence)


def _readers(evidence: Evidence) -> DataFrame:
    """Return the groups that received messages of a topic, and when they received the first."""
    delivered = evidence.spans.where((f.col("kind") == Kind.DELIVER) & f.col("group").isNotNull())
    own = delivered.where(~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    named = own.select(
        subscribing_group(evidence.options).alias("sub_group"), f.col("topic").alias("sub_topic"), "first_ts"
    )
    return named.groupBy("sub_group", "sub_topic").agg(f.min("first_ts").alias("started_ts"))


def _stated(rare: DataFrame) -> DataFrame:
    """Return group, topic, first_ts and `statement` of each subscribe event."""
    kind, attrs = f.col("kind"), f.col("attrs")
    rows = rare.where(kind.isin(Kind.SUBSCRIBE, Kind.UNSUBSCRIBE))
    in_order = Window.partitionBy("node", "group", "topic").orderBy("seq")
    rows = rows.withColumn("next_ts", f.lead("ts").over(in_order)).where(kind == Kind.SUBSCRIBE)
    stated_type = f.coalesce(attrs["type"], f.lit("TAG"))
    statement = _statement(f.col("ts"), f.col("next_ts"), stated_type, attrs["expression"])
    return rows.select("group", "topic", f.col("ts").alias("first_ts"), statement.alias("statement"))


def _statement(begin: Column | None, end: Column, kind: Column | None, expression: Column) -> Column:
    """Return a statement. Without an expression, what the group selected is unknown."""
    begin = f.lit(None).cast("bigint") if begin is None else begin
    kind = f.lit(None).cast("string") if kind is None else kind
    known_type = f.when(expression.isNotNull(), kind)
    return f.struct(
        begin.alias("from_ts"),
        end.alias("to_ts"),
        known_type.alias("type"),
        _wanted(expression).alias("wanted"),
        expression.alias("expression"),
    )


def _wanted(expression: Column) -> Column:
    """Return the tags that an expression such as `TagA || TagB` selects; null if it selects all messages."""
    spread = f.regexp_replace(expression, r"\s*\|\|\s*", _SEPARATOR)
    tags = f.split(f.regexp_replace(spread, r"^\s+|\s+$", ""), _SEPARATOR)
    named = f.filter(tags, lambda tag: tag != "")
    is_all = (f.size(named) == 0) | f.array_contains(named, _EVERYTHING)
    return f.when(is_all, f.lit(None)).otherwise(named)


def _given(options: Options) -> Column:
    """Return the expression that the user states for sub_group and sub_topic; null if there is none."""
    found = [f.lit(None).cast("string")]
    # The more parts are named, the earlier an option applies.
    for group, topic, expression in sorted(options.subscriptions, key=lambda each: each[:2].count(ANY)):
        applies = (f.col("sub_group") == group) if group != ANY else f.lit(True)
        applies = applies & (f.col("sub_topic") == topic) if topic != ANY else applies
        found.append(f.when(applies, f.lit(expression)))
    return f.coalesce(*found)
