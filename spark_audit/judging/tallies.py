"""The amount of data that the checks examine."""

from collections.abc import Mapping
from functools import reduce
from typing import Final

from mqproof.spark_audit.checks.one_owner import shared_queues
from mqproof.spark_audit.checks.status_honest import flushing
from mqproof.spark_audit.checks.sync_acked_on_slave import masters
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import Column, DataFrame
from mqproof.spark_audit.evidence.groups import orderly_groups
from mqproof.spark_audit.evidence.subscriptions import (
    NO_PROPERTIES,
    NO_TAGS,
    NOT_EVALUATED,
    deliveries_to_filters,
    tag_filters,
    with_selection,
)
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.message_judgement import TALLIED
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spec.events import Kind


def tally(evidence: Evidence, seen: Overview) -> dict[str, int]:
    """Return the tallies of what the checks examine. Runs one job."""
    kind, rows = f.col("kind"), f.col("rows")
    delivered, committed = kind == Kind.DELIVER, kind == Kind.OFFSET_COMMIT
    of_spans = {
        "delivery_steps": f.sum(f.when(delivered, rows - 1)),
        "consumer_queues": f.count_if(delivered),
        "commit_steps": f.sum(f.when(committed, rows - 1)),
        "committed_queues": f.count_if(committed),
        "groups": f.countDistinct(f.when(delivered, f.col("group"))),
    }
    is_crash = (kind == Kind.CRASH) & f.col("broker").isNotNull()
    of_rare = {
        "broker_crashes": f.count_if(is_crash),
        "process_crashes": f.count_if(is_crash & (f.col("attrs")["kind"] == "process")),
    }
    orderly = orderly_groups(evidence.rare, evidence.options)
    is_end = kind.isin(Kind.CONSUME_OK, Kind.CONSUME_FAIL)
    acks = evidence.profile.where((kind == Kind.SEND_ACK) & f.col("node").isin(*seen.brokers))
    # Checked over all runs so far: without slaves the log need not be read to find masters.
    of_slaves = (Kind.HA_TRANSFER, Kind.HA_ACK)
    looked_up = evidence.profile.where(kind.isin(*of_slaves, Kind.SUBSCRIBE)).select("kind").distinct()
    kinds = {row["kind"] for row in looked_up.collect()}
    followed = masters(evidence.log if kinds.intersection(of_slaves) else evidence.rare)
    is_subscribed = Kind.SUBSCRIBE in kinds or evidence.options.subscriptions
    numbers = _numbers(
        (evidence.judged.where("part = 'tally'"), {name: f.sum(name) for name in TALLIED}),
        (evidence.spans, of_spans),
        (evidence.rare, of_rare),
        (evidence.profile, _of_profile()),
        (orderly, {"orderly_groups": f.count(f.lit(1))}),
        (
            evidence.profile.where(is_end).join(f.broadcast(orderly), "group", "left_semi"),
            {"orderly_ends": f.sum("rows")},
        ),
        (
            acks.join(f.broadcast(flushing(evidence)), "node", "left_semi"),
            {"acks_under_sync_flush": f.sum("rows")},
        ),
        (acks.join(f.broadcast(followed), "node", "left_semi"), {"acks_under_sync_master": f.sum("rows")}),
        (shared_queues(evidence), {"shared_queues": f.count(f.lit(1))}),
        *(_of_filters(evidence) if is_subscribed else ()),
    )
    clean = dict(evidence.buckets.clean) if evidence.buckets else {}
    # All messages in a clean bucket were sent.
    clean["messages_sent"] = clean.get("messages", 0)
    return {
        **dict.fromkeys(_FILTER_TALLIES, 0),
        **numbers,
        # Attempts without a recorded broker show nothing about retries.
        "retries_told": numbers["sends_again"] if numbers["sends_with_broker"] else 0,
        "broadcast_groups": len(evidence.options.broadcast),
        "replicas": 0,  # set by _store_tallies, if there are stores
        "members": 0,
        "events": seen.rows,
        "deliveries": seen.by_kind.get(Kind.DELIVER, 0),
        **{name: numbers[name] + clean.get(name, 0) for name in TALLIED},
        **(_store_tallies(evidence.store) if evidence.store else {}),
    }


_FILTER_TALLIES: Final = (
    *("tag_filters", "filter_deliveries", "filter_deliveries_untagged"),
    *("filter_deliveries_without_properties", "filter_deliveries_not_evaluated"),
)


def _of_filters(evidence: Evidence) -> list[tuple[DataFrame, dict[str, Column]]]:
    """Return the tallies of groups that filter. Runs a job.

    The log is read again only if there are any.
    """
    filters = tag_filters(evidence)
    if not filters.head(1):
        return []
    of_deliveries = {
        "filter_deliveries": f.count(f.lit(1)),
        "filter_deliveries_untagged": f.count_if(f.col("selection") == NO_TAGS),
        "filter_deliveries_without_properties": f.count_if(f.col("selection") == NO_PROPERTIES),
        "filter_deliveries_not_evaluated": f.count_if(f.col("selection") == NOT_EVALUATED),
    }
    return [
        (filters, {"tag_filters": f.count(f.lit(1))}),
        (with_selection(deliveries_to_filters(evidence), evidence), of_deliveries),
    ]


def _of_profile() -> dict[str, Column]:
    """Return the tallies of events that only some logs have."""
    kind = f.col("kind")
    conditions = {
        **{f"{each}_events": kind == each for each in Kind},
        "scheduled_appends": (kind == Kind.APPEND) & (f.col("topic") == SCHEDULE_TOPIC),
        "sends_with_broker": (kind == Kind.SEND) & f.col("stated").isNotNull(),
    }
    return {name: f.sum(f.when(condition, f.col("rows"))) for name, condition in conditions.items()}


def _store_tallies(store: Stored) -> dict[str, int]:
    is_entry = "kind = 'entry'"
    of_records = {
        "stored_records": f.count(f.lit(1)),
        "stored_bytes": f.sum("size"),
        "stored_queues": f.countDistinct("broker", "topic", "queue_id"),
    }
    return _numbers(
        (store.records, of_records),
        (store.replicas, {"replicas": f.count(f.lit(1))}),
        (store.members, {"members": f.count(f.lit(1))}),
        (store.entries.where(is_entry), {"queue_entries": f.count(f.lit(1))}),
        (store.index.where(is_entry), {"index_entries": f.count(f.lit(1))}),
    )


def _numbers(*queries: tuple[DataFrame, Mapping[str, Column]]) -> dict[str, int]:
    """Return aggregates of several tables by name; 0 for a null. Runs one job."""
    rows = []
    for table, aggregates in queries:
        row = table.agg(
            *[f.coalesce(each.cast("long"), f.lit(0)).alias(name) for name, each in aggregates.items()]
        )
        pairs = [f.struct(f.lit(name).alias("name"), f.col(name).alias("number")) for name in aggregates]
        rows.append(row.select(f.explode(f.array(*pairs)).alias("pair")))
    together = reduce(lambda one, other: one.unionAll(other), rows)
    return {row["pair"]["name"]: row["pair"]["number"] for row in together.collect()}
