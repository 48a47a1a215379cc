"""Gathers the evidence for the checks: small aggregates of the event log, computed once and used by many.

Nothing here judges. Small jobs, and one for the fingerprints, compute the facts that tasks need. The other
results are plans, which `collect.py` executes.

Field names are those of docs/reference/protocol/event-log.md, "Audit inputs".
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.broker_cuts import append_outcomes, on_broker
from mqproof.spark_audit.evidence.causes import causes_of
from mqproof.spark_audit.evidence.log_pass import Keep, Passed, folds, plan_buckets, sum_up
from mqproof.spark_audit.evidence.messages import messages_of
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.participants import Participants, participants_of
from mqproof.spark_audit.evidence.places import broker_of, name_broker, spans_of
from mqproof.spark_audit.evidence.selected_events import (
    ambiguous_keys,
    events_of_failures,
    events_of_messages,
    failed_messages,
    traffic_of,
)
from mqproof.spark_audit.evidence.sql_selection import sql_selection
from mqproof.spark_audit.evidence.tables import IS_MESSAGE, Evidence
from mqproof.spark_audit.passes import fingerprint, profile, sums
from mqproof.spark_audit.passes.extraction import Extraction
from mqproof.spark_audit.passes.fingerprint import Buckets
from mqproof.spark_audit.passes.message_columns import (
    message_key,
)
from mqproof.spark_audit.passes.profile import rare_rows
from mqproof.spark_audit.passes.sequences import find_irregular_ranges, irregular_steps, numbered
from mqproof.spark_audit.passes.sums import Known
from mqproof.spark_audit.scan.run_over_log import fold
from mqproof.spark_audit.schema import require
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store.stored import Stored
from mqproof.spark_audit.spark_schema import PASS
from mqproof.spec.events import COLUMNS


def gather(
    log: EventLog,
    brokers: tuple[str, ...],
    options: Options | None = None,
    store: Stored | None = None,
    passed: Passed | None = None,
    profiled: DataFrame | None = None,
    folder: Path | None = None,
    keep: Keep = lambda frame: frame,
) -> Evidence:
    """Return the evidence in an event log and in stores.

    `brokers` are the nodes that reported a BROKER_KINDS event. `passed` and `profiled` are existing results
    of the pass over the log and of its profile. The rows that are checked exactly are written to the
    `folder`; without a folder they are read from the log. `keep` is called with tables that are read more
    than once.

    Raises:
        SchemaError: the table is not an event log.
    """
    require(log.rows, COLUMNS, "the audit")
    options = options or Options()
    passed = passed or sum_up(log, plan_buckets(log, options, store), keep)
    profiled = profile.summed_up(passed.profile_and_runs) if profiled is None else profiled
    rare = keep(name_broker(rare_rows(profiled), brokers))
    spans = keep(spans_of(profiled, brokers))
    compared = _compared(log, brokers, options, passed, profiled, rare, folder, keep)
    selected = _select_ambiguous(log, options, store, compared, rare, keep)
    events = traffic_of(name_broker(selected.rows.rows, brokers))
    ambiguous_events = events_of_messages(events, selected.ambiguous)
    named = name_broker(log.rows, brokers)
    return Evidence(
        events=traffic_of(named),
        rare=rare,
        buckets=compared.buckets,
        judged=selected.judged,
        ambiguous=selected.ambiguous,
        ambiguous_events=ambiguous_events,
        messages=messages_of(on_broker(ambiguous_events, rare, options)),
        failure_events=events_of_failures(events, rare),
        runs=compared.runs,
        steps=irregular_steps(events, compared.irregular_ranges),
        spans=spans,
        causes=compared.causes,
        log=named,
        profile=profiled,
        options=options,
        sql_selected=sql_selection(rare, named),
        store=store,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Results of comparing the buckets and the runs of the whole log."""

    known: Known
    buckets: Buckets | None
    passed: Passed
    runs: DataFrame
    irregular_ranges: DataFrame
    causes: DataFrame
    extraction: Extraction | None


def _compared(
    log: EventLog,
    brokers: tuple[str, ...],
    options: Options,
    passed: Passed,
    profiled: DataFrame,
    rare: DataFrame,
    folder: Path | None,
    keep: Keep,
) -> _Compared:
    runs = passed.profile_and_runs.where("part = 'run'").withColumn(
        "broker", broker_of(f.col("stated"), brokers)
    )
    with ThreadPoolExecutor(1) as pool:
        sorts = pool.submit(participants_of, profiled, brokers)
        cut = append_outcomes(rare, options).toArrow()
        participants = sorts.result()
        known = Known(participants.readers_table, cut, participants.roles)
        # While tasks judge the buckets, the driver plans everything that does not depend on them.
        judged = pool.submit(_fingerprints, log, passed, known, participants, brokers, keep)
        causes = keep(causes_of(rare))
        irregular_ranges = keep(find_irregular_ranges(runs))
        extraction = Extraction(folder, numbered(irregular_ranges), options.id_prefix) if folder else None
        buckets, passed = judged.result()
    return _Compared(known, buckets, passed, runs, irregular_ranges, causes, extraction)


@dataclass(frozen=True, slots=True)
class _Ambiguous:
    """The messages that are checked exactly."""

    judged: DataFrame
    ambiguous: DataFrame
    rows: EventLog
    """The events of these messages, possibly with others."""


def _select_ambiguous(
    log: EventLog,
    options: Options,
    store: Stored | None,
    compared: _Compared,
    rare: DataFrame,
    keep: Keep,
) -> _Ambiguous:
    buckets, extraction, known = compared.buckets, compared.extraction, compared.known
    selected_log = log
    if buckets and extraction:
        selected_log = extraction.of_buckets(log, compared.passed.rows, buckets.read)
    summed = sums.aggregate_messages(
        selected_log, known, options.id_prefix, buckets.read if buckets else None
    )
    # Acknowledged messages are looked up in the store.
    judged = sums.judge(summed, known, options.id_prefix, options.sample, return_all=store is not None)
    judged = keep(judged.withColumn("key", message_key()))
    ambiguous = keep(ambiguous_keys(judged, store))
    if extraction:
        ids = _ids(judged, ambiguous, rare)
        selected_log = extraction.of_messages(log, selected_log if buckets else None, ids)
    return _Ambiguous(judged, ambiguous, selected_log)


def _fingerprints(
    log: EventLog,
    passed: Passed,
    known: Known,
    participants: Participants,
    brokers: tuple[str, ...],
    keep: Keep,
) -> tuple[Buckets | None, Passed]:
    """Return the judged buckets and the pass over the log that aggregated them.

    If the guess of the first pass was wrong, there is a second pass.
    """
    if not passed.plan:
        return None, passed
    plan, rows = passed.plan, passed.rows
    expected_readers = fingerprint.expected_readers(plan.guess, participants.readers, participants.topics)
    if expected_readers is None:
        plan = replace(plan, guess=replace(plan.guess, readers=participants.readers))
        rows = keep(fold(log, folds(plan), PASS))
        expected_readers = fingerprint.expected_readers(plan.guess, participants.readers, participants.topics)
    assert expected_readers is not None, "classes were made of who reads their topics"
    return fingerprint.buckets(rows, plan, known, expected_readers, brokers), replace(passed, rows=rows)


def _ids(judged: DataFrame, ambiguous: DataFrame, rare: DataFrame) -> DataFrame:
    """Return msg_id of the messages that are checked exactly."""
    ids = judged.where(IS_MESSAGE).join(f.broadcast(ambiguous), "key", "left_semi").select("msg_id")
    return ids.unionByName(failed_messages(rare))
