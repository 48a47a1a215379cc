"""Collects the evidence in an event log on the embedded engine, by plain SQL over one table.

Every message is judged by its sums, and every step of a consumer is compared with the one before: a small log
needs no buckets and no runs (passes/), which save Spark from sorting a large one. The tables are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.broker_cuts import append_outcomes, on_broker
from mqproof.spark_audit.evidence.causes import causes_of
from mqproof.spark_audit.evidence.collected import Collected, refuse_namesakes, without_repeats
from mqproof.spark_audit.evidence.groups import by_member
from mqproof.spark_audit.evidence.history import NO_HISTORY, ExaminedRows, History
from mqproof.spark_audit.evidence.messages import messages_of
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import name_broker, spans_of
from mqproof.spark_audit.evidence.selected_events import (
    ambiguous_keys,
    events_of_failures,
    events_of_messages,
    traffic_of,
)
from mqproof.spark_audit.evidence.sql_selection import sql_selection
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.embedded_sums import judged_messages
from mqproof.spark_audit.passes.message_columns import RETRY_TOPIC_PREFIX, message_key
from mqproof.spark_audit.passes.profile import is_reset, overview, profiled_rows, rare_rows
from mqproof.spark_audit.passes.steps import all_irregular_steps
from mqproof.spark_audit.passes.times import NOTHING_SET_ASIDE, plausible_times, set_aside
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spec.events import COLUMNS, Kind

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog


@contextmanager
def embedded_collected(
    log: "EmbeddedLog",
    options: Options | None = None,
    store: Stored | None = None,
    history: History = NO_HISTORY,
    *,
    pictures: bool = False,
) -> Iterator[Collected]:
    """Collect the evidence in a log and in stores. The engine must be in use (engine.active).

    Raises:
        InputError: two nodes have the same name, or times are not microseconds.
    """
    options = options or Options()
    rows = by_member(log.events, options.broadcast)
    profiled = profiled_rows(rows).persist()
    seen, repeated, aside = overview(profiled), 0, NOTHING_SET_ASIDE
    if bounds := plausible_times(rows, seen.first_ts, seen.last_ts):
        aside = set_aside(rows, bounds)
        rows = rows.where(bounds.contain())
        profiled = profiled_rows(rows).persist()
        seen = overview(profiled)
    if seen.repeated_rows:
        rows = without_repeats(rows)
        profiled = profiled_rows(rows).persist()
        once = overview(profiled)
        refuse_namesakes(once)
        seen, repeated = once, seen.rows - once.rows
    own, examined, whole = seen, rows, profiled
    rows = rows.select(*COLUMNS)
    if earlier := history.earlier(rows, profiled, seen):
        examined, seen = rows.unionByName(earlier.rows), earlier.overview
        examined = examined.withColumns({"stated": f.col("attrs")["broker"], "reset": is_reset()}).persist()
        whole = earlier.profile.persist()
    # Not kept in memory: the columns that it adds cost less than a copy of the others.
    named = name_broker(examined, seen.brokers, f.col("stated"))
    evidence = evidence_of(named, whole, seen.brokers, options, store, pictures=pictures)
    evidence = replace(evidence, complete_from=seen.complete_from)
    evidence = history.amend(evidence, rows, seen.brokers)
    yield Collected(evidence, seen, repeated, ExaminedRows(None, profiled, own, named), aside)


def evidence_of(
    named: DataFrame,
    profiled: DataFrame,
    brokers: tuple[str, ...],
    options: Options,
    store: Stored | None = None,
    *,
    pictures: bool = False,
) -> Evidence:
    """Return the evidence in stores and in a log, given its profile.

    The log has the columns `broker` and `reset`, too.
    """
    for table in (store.ambiguous, store.bounds) if store else ():
        table.persist()
    log = named.select(*COLUMNS, "broker")
    rare = name_broker(rare_rows(profiled), brokers).persist()
    events = traffic_of(named, f.col("reset"))
    spans = spans_of(profiled, brokers).persist()
    # Acknowledged messages are looked up in the store.
    judged = judged_messages(
        events,
        append_outcomes(rare, options),
        _readers(spans),
        sampled=pictures,
        return_all=store is not None,
    )
    judged = judged.withColumn("key", message_key()).persist()
    ambiguous = ambiguous_keys(judged, store).persist()
    ambiguous_events = events_of_messages(events, ambiguous).persist()
    return Evidence(
        events=events,
        rare=rare,
        buckets=None,
        judged=judged,
        ambiguous=ambiguous,
        ambiguous_events=ambiguous_events,
        messages=messages_of(on_broker(ambiguous_events, rare, options)).persist(),
        failure_events=events_of_failures(events, rare).persist(),
        # The extent of a sequence contains its runs.
        runs=spans,
        steps=all_irregular_steps(events).persist(),
        spans=spans,
        causes=causes_of(rare).persist(),
        log=log,
        profile=profiled,
        options=options,
        sql_selected=sql_selection(rare, log),
        store=store,
    )


def _readers(spans: DataFrame) -> DataFrame:
    """Return subscribed_topic and group: the groups that received a message of the topic."""
    is_read = (f.col("kind") == Kind.DELIVER) & f.col("topic").isNotNull() & f.col("group").isNotNull()
    read = spans.where(is_read & ~f.col("topic").startswith(RETRY_TOPIC_PREFIX))
    return read.select(f.col("topic").alias("subscribed_topic"), "group").distinct()
