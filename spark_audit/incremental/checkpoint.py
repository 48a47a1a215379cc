"""Writes the state of an incremental run, so that all runs together equal one run over all logs.

A run judges its log together with the carried rows:

- the rows of open messages: unanswered, or stored and not yet delivered to every group that reads their
  topic;
- all rows of the last `late` before the end of the logs;
- the last row of each consumer and committed offset.

A message that is not open and had no event for `late` is settled: its rows are no longer kept, and its
findings are final.

The state is a folder of Parquet files. It is replaced as a whole when the run's report is written; an
interrupted run leaves the old state.

The result is exact if related events (a message's copies, a step and its cause) are no further apart than
`late`; a delivery may be any number of runs late. For later events, repeated deliveries are recognised by
their offset, and a cause counts from the run that may have had the first delivery. A record that is truncated
or stored again later than that is not recognised as another one. For routing, replication and elections, the
checkpoint carries their current state (node_states.py).
"""

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from mqproof.report.write import write_bytes
from mqproof.spark_audit.checks import (
    acked_in_store,
    never_overlaps,
    no_acked_lost,
    offset_monotone,
    offsets_ahead,
    queue_order,
    retry_then_dead_letter,
    topics_known,
)
from mqproof.spark_audit.checks.one_owner import shared_queues, turns
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.groups import subscribed
from mqproof.spark_audit.evidence.history import ExaminedRows
from mqproof.spark_audit.evidence.places import placed_rows, spans_of
from mqproof.spark_audit.evidence.subscriptions import FILTERED
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.incremental.carried_state import (
    EARLIER,
    IDENTITY,
    NO_BATCH,
    QUEUE,
    Batch,
    Manifest,
    last_rows,
    renamed,
    same,
)
from mqproof.spark_audit.incremental.node_states import carried_rows
from mqproof.spark_audit.incremental.state_folder import MANIFEST, SCHEMA_VERSION, IncrementalRun
from mqproof.spark_audit.incremental.state_tables import write_table
from mqproof.spark_audit.passes.message_columns import message_key
from mqproof.spark_audit.passes.profile import merged, overview
from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spec.events import COLUMNS, Kind

_STORED: Final = (Kind.SEND_ACK, Kind.APPEND)

_OF_CLIENTS: Final = (Kind.SEND, Kind.DELIVER)
"""Kinds that only clients report."""

_OF_MESSAGE: Final = (Kind.CONSUME_FAIL, Kind.RETRY, Kind.DEAD_LETTER)

_OF_STEPS: Final = (queue_order.INVARIANT, offset_monotone.INVARIANT, never_overlaps.INVARIANT)
"""Checks of sequences of events: their findings become final by time alone."""

OF_ONE_NODE: Final = ("ROUTE-1", "ROUTE-2", "ROUTE-3", "REPL-1", "REPL-2", "REPL-3", "RAFT-2", "RAFT-6")
"""Checks of one node's events in its own order: later events do not change their findings."""

_HOUR_US: Final = 3_600_000_000

_OF_STORES: Final = (acked_in_store.ABSENT, offsets_ahead.AHEAD, topics_known.METADATA)


def settle(
    run: IncrementalRun,
    evidence: Evidence,
    examined: ExaminedRows,
    brokers: tuple[str, ...],
    found: DataFrame,
    ran: Collection[str],
    into: Path,
    batch: Batch = NO_BATCH,
) -> None:
    """Write the state that this run leaves.

    `found` are all findings of its evidence, by the checks that `ran`.
    """
    watermark = next_watermark(run, overview(evidence.profile).last_ts, time.time_ns() // 1_000)
    profiled = remembered(evidence.profile, watermark - run.forget_us)
    evidence = replace(evidence, profile=profiled, spans=spans_of(profiled, brokers))
    whole = overview(profiled)
    log = examined.log.where(f.col("node") != EARLIER)
    # A row is identified by its node and number.
    ends = last_rows(evidence.profile, brokers).select("node", "seq").distinct()
    if shared_queues(evidence).head(1):
        ends = ends.unionByName(turns(evidence, watermark)).distinct()
    marked = log.join(f.broadcast(ends.withColumn("is_end", f.lit(True))), ["node", "seq"], "left")
    is_near = f.col("is_end").isNotNull() | (f.col("ts") >= watermark)
    near = marked.where(is_near & f.col("msg_id").isNotNull()).select(message_key().alias("key"))
    kept = near.unionByName(_open(evidence, found)).distinct().withColumn("is_kept", f.lit(True))
    kept = kept.persist()
    try:
        rows = marked.join(kept, message_key() == f.col("key"), "left").where(
            is_near | f.col("is_kept").isNotNull()
        )
        write_table(rows.select(*COLUMNS), into / "rows")
        write_table(_pruned(evidence.profile, kept), into / "profile", is_small=True)
        write_table(evidence.steps.where(f.col("ts") >= watermark), into / "steps", is_small=True)
        reach = _reach(examined.profile, brokers)
        if run.carried:
            reach = reach.unionByName(run.carried.reach)
        write_table(_still_read(by_hour(reach, watermark), evidence.spans), into / "reach", is_small=True)
        current_states = carried_rows(evidence.log, whole.by_kind, watermark)
        write_table(current_states.select(*COLUMNS), into / "standing", is_small=True)
        write_table(_known(run, found, ran, kept, watermark), into / "findings")
    finally:
        kept.unpersist()
    newest = newest_batch(run, batch)
    of_batch = (newest.number, newest.files, newest.places)
    manifest = Manifest(SCHEMA_VERSION, run.number, watermark, whole.missing_rows, *of_batch)
    write_bytes(into / MANIFEST, msgspec.json.encode(manifest))


def next_watermark(run: IncrementalRun, last_ts: int, now_us: int) -> int:
    """Return the watermark of the state that a run leaves, given the time of the newest event of all runs.

    A clock that is ahead of ours does not advance the watermark.
    """
    before = run.carried.manifest.watermark if run.carried else 0
    return max(before, min(last_ts, now_us) - run.late_us)


def newest_batch(run: IncrementalRun, batch: Batch) -> Batch:
    """Return the newest batch in the state that a run leaves.

    `batch` is the run itself, if it is a batch. A watch continues after its newest batch, whatever runs
    follow that batch.
    """
    return run.carried.manifest.newest_batch if run.carried and batch == NO_BATCH else batch


def remembered(profiled: DataFrame, since: int) -> DataFrame:
    """Remove clients without events since then: every restart adds clients that never return."""
    last = profiled.groupBy("node").agg(
        f.max("last_ts").alias("last_ts"), f.bool_or(f.col("kind").isin(*_OF_CLIENTS)).alias("is_client")
    )
    inactive = [row["node"] for row in last.where(f.col("is_client") & (f.col("last_ts") < since)).collect()]
    return profiled.where(~f.col("node").isin(inactive)) if inactive else profiled


def _open(evidence: Evidence, found: DataFrame) -> DataFrame:
    """Return keys of messages with events still to come.

    These are not yet delivered to every group, never answered, or failed without a later event. No delivery
    is expected of a message that a group has read past and does not subscribe to. NoAckedLost has a finding
    for it.
    """
    known = evidence.messages.join(
        f.broadcast(subscribed(evidence.spans)), f.col("topic") == f.col("subscribed_topic"), "left"
    )
    lacking = known.select("msg_id", f.explode(f.array_except("subscribed", "groups")).alias("group"))
    filtered = found.where((f.col("invariant") == no_acked_lost.INVARIANT) & (f.col("cause") == FILTERED))
    undelivered = lacking.join(filtered.select("msg_id", "group"), ["msg_id", "group"], "left_anti")
    undelivered = undelivered.select(message_key().alias("key")).distinct()
    unanswered = evidence.sums.where(
        "clean AND acked = 0 AND deliveries = 0 AND (appends + soft_acked + unknown > 0 OR sends > refused)"
    )
    is_open = undelivered.unionByName(unanswered.select("key"))
    if not evidence.rare.where(f.col("kind") == Kind.CONSUME_FAIL).head(1):
        return is_open
    failed = retry_then_dead_letter.pending(evidence)
    return is_open.unionByName(failed.select(message_key().alias("key")))


def _known(
    run: IncrementalRun, found: DataFrame, ran: Collection[str], kept: DataFrame, watermark: int
) -> DataFrame:
    """Return all findings that the next run needs."""
    by_time = f.col("invariant").isin(*_OF_STEPS) | f.col("msg_id").isNull()
    final = f.when(by_time, f.col("last_ts") < watermark).otherwise(f.col("is_kept").isNull())
    final = final | f.col("invariant").isin(*OF_ONE_NODE)
    # Findings about stores are computed again in each run.
    final = f.coalesce(final & ~f.col("rule").isin(*_OF_STORES), f.lit(False))
    judged = found.join(kept, message_key() == f.col("key"), "left").withColumn("final", final)
    if run.carried is None:
        numbered, unchanged = judged.withColumn("night", f.lit(run.number)), None
    else:
        before = run.carried.findings
        first = renamed(before.select(*IDENTITY, f.col("night").alias("first_night")), IDENTITY)
        numbered = judged.join(first, same(IDENTITY), "left").withColumn(
            "night", f.coalesce("first_night", f.lit(run.number))
        )
        unchanged = before.where(f.col("final") | ~f.col("invariant").isin(*ran))
    judged = numbered.select(*FINDING_COLUMNS, "night", "final")
    if unchanged is not None:
        judged_again = renamed(unchanged.select(*IDENTITY), IDENTITY)
        judged = judged.join(judged_again, same(IDENTITY), "left_anti").unionByName(unchanged)
    return judged.where("cause IS NULL OR NOT final")


def _pruned(profiled: DataFrame, kept: DataFrame) -> DataFrame:
    """Return the profile with one row per key, without rows that are no longer needed.

    These are failures of messages that are no longer kept, and brokers' registrations: only clients'
    registrations explain anything.
    """
    of_message = f.when(f.col("kind").isin(*_OF_MESSAGE), f.get_json_object("rare", "$.msg_id"))
    of_broker = (f.col("kind") == Kind.REGISTER) & f.get_json_object("rare", "$.client").isNull()
    known = profiled.withColumn("of_message", of_message).join(
        kept, f.xxhash64("of_message") == f.col("key"), "left"
    )
    is_dropped = f.col("of_message").isNotNull() & f.col("is_kept").isNull()
    known = known.withColumn("rare", f.when(~(is_dropped | of_broker), f.col("rare"))).select(
        *profiled.columns
    )
    return merged(known)


def _reach(profiled: DataFrame, brokers: tuple[str, ...]) -> DataFrame:
    placed = placed_rows(profiled, brokers).where(f.col("kind").isin(Kind.DELIVER, *_STORED))
    delivered = placed.withColumn("group", f.when(f.col("kind") == Kind.DELIVER, f.col("group")))
    return delivered.groupBy("group", *QUEUE).agg(
        f.min("offset_min").alias("offset_min"),
        f.max("offset_max").alias("offset_max"),
        f.min("first_ts").alias("first_ts"),
    )


def by_hour(reach: DataFrame, watermark: int) -> DataFrame:
    """Merge the old rows of each queue that are of one hour: a watch has many runs in an hour."""
    first = f.col("first_ts")
    period = f.when(first < watermark, first - first % _HOUR_US).otherwise(first)
    return (
        reach.groupBy("group", *QUEUE, period.alias("period"))
        .agg(
            f.min("offset_min").alias("offset_min"),
            f.max("offset_max").alias("offset_max"),
            f.min("first_ts").alias("first_ts"),
        )
        .drop("period")
    )


def _still_read(reach: DataFrame, spans: DataFrame) -> DataFrame:
    """Remove deliveries to groups that are no longer remembered.

    A group that returns starts without history.
    """
    readers = spans.where(f.col("kind") == Kind.DELIVER).select("group", "topic").distinct()
    of_groups = reach.join(f.broadcast(readers), ["group", "topic"], "left_semi")
    return reach.where(f.col("group").isNull()).unionByName(of_groups)
