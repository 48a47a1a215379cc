"""Gathers the evidence for the checks: small aggregates of the event log, computed once and used by many.

Nothing here judges. Small jobs, and one for the fingerprints, compute the facts that tasks need. The other
results are plans, which `audit.py` executes.

Field names are those of docs/reference/protocol/event-log.md, "Audit inputs".
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from mqproof.spark_audit.evidence.broker_cuts import append_outcomes, on_broker
from mqproof.spark_audit.evidence.causes import causes_of
from mqproof.spark_audit.evidence.log_pass import Keep, Passed, folds, plan_buckets, sum_up
from mqproof.spark_audit.evidence.messages import OF_HALVES, messages_of
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import broker_of, name_broker, spans_of
from mqproof.spark_audit.evidence.tables import IS_MESSAGE, Evidence
from mqproof.spark_audit.passes import fingerprint, profile, sums
from mqproof.spark_audit.passes.bucket_plan import readers_of
from mqproof.spark_audit.passes.extraction import Extraction
from mqproof.spark_audit.passes.fingerprint import Buckets
from mqproof.spark_audit.passes.message_columns import (
    is_of_message,
    message_key,
)
from mqproof.spark_audit.passes.over_log import fold
from mqproof.spark_audit.passes.profile import is_reset, rare_rows
from mqproof.spark_audit.passes.sequences import numbered, odd_steps, stretches
from mqproof.spark_audit.passes.sql import quoted
from mqproof.spark_audit.passes.sums import Known
from mqproof.spark_audit.schema import PASS, require
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store_tables import Stored
from mqproof.spec.events import COLUMNS, Kind

TRAFFIC: Final = tuple(name for name in COLUMNS if name not in ("term", "keys", "born_ts", "attrs"))


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
    profiled = profile.summed_up(passed.told) if profiled is None else profiled
    rare = keep(name_broker(rare_rows(profiled), brokers))
    spans = keep(spans_of(profiled, brokers))
    compared = _compared(log, brokers, options, passed, profiled, rare, folder, keep)
    doubts = _doubts(log, options, store, compared, rare, keep)
    events = _events(name_broker(doubts.rows.rows, brokers))
    of_messages = f"{is_of_message()} OR (msg_id IS NOT NULL AND kind IN ({quoted(*OF_HALVES)}))"
    doubted = events.where(of_messages).join(doubts.doubtful, message_key() == f.col("key"), "left_semi")
    named = name_broker(log.rows, brokers)
    return Evidence(
        events=_events(named),
        rare=rare,
        buckets=compared.buckets,
        judged=doubts.judged,
        doubtful=doubts.doubtful,
        doubted=doubted,
        messages=messages_of(on_broker(doubted, rare, options)),
        troubled=events.join(f.broadcast(_in_trouble(rare).distinct()), "msg_id", "left_semi"),
        runs=compared.runs,
        steps=odd_steps(events, compared.stretched),
        spans=spans,
        causes=compared.causes,
        log=named,
        profile=profiled,
        options=options,
        store=store,
    )


@dataclass(frozen=True, slots=True)
class _Compared:
    """Results of comparing the buckets and the runs of the whole log."""

    known: Known
    buckets: Buckets | None
    passed: Passed
    runs: DataFrame
    stretched: DataFrame
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
    runs = passed.told.where("part = 'run'").withColumn("broker", broker_of(f.col("stated"), brokers))
    with ThreadPoolExecutor(1) as beside:
        sorts = beside.submit(_traffic, profiled, brokers)
        cut = append_outcomes(rare, options).toArrow()
        traffic = sorts.result()
        known = Known(traffic.owing, cut, traffic.roles)
        # While tasks judge the buckets, the driver plans everything that does not depend on them.
        judged = beside.submit(_fingerprints, log, passed, known, traffic, brokers, keep)
        causes = keep(causes_of(rare))
        stretched = keep(stretches(runs))
        extraction = Extraction(folder, numbered(stretched), options.id_prefix) if folder else None
        buckets, passed = judged.result()
    return _Compared(known, buckets, passed, runs, stretched, causes, extraction)


@dataclass(frozen=True, slots=True)
class _Doubts:
    """The messages that are checked exactly."""

    judged: DataFrame
    doubtful: DataFrame
    rows: EventLog
    """Their events, possibly with others."""


def _doubts(
    log: EventLog,
    options: Options,
    store: Stored | None,
    compared: _Compared,
    rare: DataFrame,
    keep: Keep,
) -> _Doubts:
    buckets, extraction, known = compared.buckets, compared.extraction, compared.known
    among = log
    if buckets and extraction:
        among = extraction.of_buckets(log, compared.passed.rows, buckets.read)
    summed = sums.ask(among, known, options.id_prefix, buckets.read if buckets else None)
    # Acknowledged messages are looked up in the store.
    judged = sums.judge(summed, known, options.id_prefix, options.sample, all_told=store is not None)
    judged = keep(judged.withColumn("key", message_key()))
    doubtful = keep(_doubtful(judged, store))
    if extraction:
        ids = _ids(judged, doubtful, rare)
        among = extraction.of_messages(log, among if buckets else None, ids)
    return _Doubts(judged, doubtful, among)


def _fingerprints(
    log: EventLog,
    passed: Passed,
    known: Known,
    traffic: "_Traffic",
    brokers: tuple[str, ...],
    keep: Keep,
) -> tuple[Buckets | None, Passed]:
    """Return the judged buckets and the pass over the log that aggregated them.

    If the guess of the first pass was wrong, there is a second pass.
    """
    if not passed.plan:
        return None, passed
    plan, rows = passed.plan, passed.rows
    owed = fingerprint.owed(plan.guess, traffic.readers, traffic.topics)
    if owed is None:
        plan = replace(plan, guess=replace(plan.guess, readers=traffic.readers))
        rows = keep(fold(log, folds(plan), PASS))
        owed = fingerprint.owed(plan.guess, traffic.readers, traffic.topics)
    assert owed is not None, "classes were made of who reads their topics"
    return fingerprint.buckets(rows, plan, known, owed, brokers), replace(passed, rows=rows)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """The kinds of rows, topics and readers of a log."""

    readers: dict[str, tuple[str, ...]]
    """Maps a topic to the groups that read it."""
    topics: frozenset[str | None]
    roles: int
    """As in sums.Known."""

    @property
    def owing(self) -> pa.Table:
        """The readers, in the form of sums.Known."""
        pairs = [(topic, group) for topic, groups in self.readers.items() for group in groups]
        topics, groups = (pa.array([pair[at] for pair in pairs], pa.string()) for at in range(2))
        return pa.table({"subscribed_topic": topics, "group": groups})


def _traffic(profiled: DataFrame, brokers: tuple[str, ...]) -> _Traffic:
    of_broker = f.coalesce(f.col("node").isin(*brokers), f.lit(False)).alias("of_broker")
    sorts = profiled.select("kind", of_broker, "topic", "group", "placed").distinct().collect()
    handed = [row.asDict() for row in sorts if row["kind"] == Kind.DELIVER and row["placed"]]
    # A broker that reports its acknowledgements does so in addition to the producers.
    told = {
        (row["kind"], row["of_broker"] and row["kind"] == Kind.SEND_ACK)
        for row in sorts
        if row["kind"] in (Kind.SEND, Kind.SEND_ACK, Kind.APPEND)
    }
    topics = frozenset(row["topic"] for row in sorts)
    return _Traffic(readers_of(handed), topics, len(told))


def _in_trouble(rare: DataFrame) -> DataFrame:
    """Return msg_id of Evidence.troubled."""
    return rare.where(
        f.col("kind").isin(Kind.CONSUME_FAIL, Kind.DEAD_LETTER) & f.col("msg_id").isNotNull()
    ).select("msg_id")


def _events(named: DataFrame) -> DataFrame:
    """Return Evidence.events, given rows with their broker."""
    return named.select(*TRAFFIC, "broker", is_reset().alias("reset"))


def _ids(judged: DataFrame, doubtful: DataFrame, rare: DataFrame) -> DataFrame:
    """Return msg_id of the messages that are checked exactly."""
    told = judged.where(IS_MESSAGE).join(f.broadcast(doubtful), "key", "left_semi").select("msg_id")
    return told.unionByName(_in_trouble(rare))


def _doubtful(judged: DataFrame, store: Stored | None) -> DataFrame:
    """Return the keys of the messages that the checks examine."""
    of_messages = judged.where(IS_MESSAGE)
    doubtful = of_messages.where("NOT clean").select("key")
    if store is None:
        return doubtful
    absent = of_messages.where("acked > 0").join(
        store.records.select(message_key().alias("key")), "key", "left_anti"
    )
    return doubtful.unionByName(absent.select("key"))
