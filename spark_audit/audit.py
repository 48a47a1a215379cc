"""Runs the checks over an event log and judges what they found.

A verdict rests on the evidence: having seen nothing is unknown, and so is what missing rows could explain.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.checks import EVENT_CHECKS, Check
from mqproof.spark_audit.checks.one_owner import shared_queues
from mqproof.spark_audit.checks.status_honest import flushing
from mqproof.spark_audit.checks.sync_acked_on_slave import masters
from mqproof.spark_audit.evidence.gather import (
    Evidence,
    Keep,
    Options,
    Passed,
    by_member,
    gather,
    name_broker,
    orderly_groups,
    plan_buckets,
    skew_seen,
    sum_up,
)
from mqproof.spark_audit.incremental.checkpoint import (
    Carried,
    Looked,
    Night,
    all_found,
    only_new,
    settle,
    withdrawn,
)
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, guess
from mqproof.spark_audit.passes.message_columns import SCHEDULE_TOPIC
from mqproof.spark_audit.passes.profile import Overview, overview, summed_up
from mqproof.spark_audit.passes.sums import TALLIED
from mqproof.spark_audit.reporting.plot_data import pictures as draw
from mqproof.spark_audit.schema import FINDINGS
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.inputs import InputError, literal
from mqproof.spark_audit.sources.store_tables import Stored
from mqproof.spec.catalogue import catalogue
from mqproof.spec.events import Kind

WITNESSES_MAX: Final = 8
"""So many a rule go into the report; all of them into violations.parquet."""

_SKEW_MAX_US: Final = 60_000_000
"""What is seen beyond that is no clock, but rows that are missing."""

_ROW_GROUP: Final = 100_000

_ABREAST: Final = 2
"""So many checks or tables at a time: Spark plans one, which takes about as long, while it runs the other."""

_FEW: Final = ("rare", "spans", "causes", "doubted", "messages", "troubled", "steps", "profile")
"""Tables of the evidence that are small, unless much of the log is in doubt."""

_SMALL: Final = 1_000_000
"""Of logs of no more events than that every message is looked at."""

_SAMPLE_ROWS: Final = 250_000
"""Of logs of more than twice so many events, latencies are those of about so many."""
_SAMPLE_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Audit:
    overview: Overview
    tallies: dict[str, int]
    results: tuple[Result, ...]
    explained: Counter[tuple[str, str, str]]
    """(invariant, rule, cause) to how many findings have it: legal, and counted."""
    findings: Path
    """Parquet files of schema.FINDINGS, one folder a check."""
    deduplicated_rows: int = 0
    pictures: dict[str, list[Any]] = field(default_factory=dict)
    """The numbers behind the plots, see pictures.py."""
    withdrawn: int = 0
    """Violations of earlier nights that this one has shown to be none."""
    skew_us: int = 0
    """By how much clocks were allowed to disagree."""
    skew_seen_us: int = 0
    """By how much they do, at least."""
    unreadable_rows: int = 0
    """Rows of the input that are no events."""
    unreadable_traces: int = 0


@dataclass(frozen=True, slots=True)
class _Ran:
    """What came of a check."""

    result: Result
    counted: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    """(rule, cause) to the number of findings."""


def audit(
    log: DataFrame | EventLog,
    scratch: Path,
    *,
    options: Options | None = None,
    store: Stored | None = None,
    checks: Mapping[str, Check] = EVENT_CHECKS,
    unreadable_rows: int = 0,
    given_rows: int = 0,
    replay: str = "",
    pictures: bool = True,
    progress: Callable[[str], None] | None = None,
    night: Night | None = None,
    next_state: Path | None = None,
    batch: int = -1,
) -> Audit:
    """Judge the log by the checks. Writes all findings below `scratch`, which must exist.

    Of a `night` those findings are told that no earlier one had; what the next needs goes into `next_state`;
    `batch` is the night's number in a stream.

    Checks of stores need `store`. `unreadable_rows` were in the input and are not in the log: like missing
    ones, they weaken the verdicts. So are those of `given_rows`, all that the input has, which are not there.

    Raises:
        InputError: two nodes go by one name. pyspark's own errors: a file turns out to be damaged.
    """
    say = progress or (lambda _: None)
    carried = night.carried if night else None
    looked_at = _gathered(log, options, store, carried, pictures=pictures, scratch=scratch)
    with looked_at as (evidence, seen, repeated, read):
        say(f"{seen.rows} events of {len(seen.nodes)} nodes")
        tallies = _tallies(evidence, seen)
        evidence, skew_seen_us = _with_skew(evidence)
        unreadable_rows = max(unreadable_rows, given_rows - seen.rows - repeated)
        missing = max(seen.missing_rows, unreadable_rows)

        def run(of: tuple[str, Check]) -> _Ran | None:
            invariant, check = of
            started = time.monotonic()
            if check.needs and not any(tallies[name] for name in check.needs):
                return _Ran(_not_tested(invariant, check))
            say(f"{invariant} {catalogue()[invariant].name}")
            path = scratch / "findings" / invariant
            found = check.findings(evidence)
            if carried:
                found = only_new(_written(found, scratch / "found" / invariant), carried)
            _written(found, path)
            counted = _counted(path)
            verdict, detail = judge(check, tallies, counted, missing if check.of_events else 0)
            needs_events = store and check.of_stores and check.of_events and not check.stores_suffice
            if needs_events and not (seen.rows or counted):
                # Stores alone can show that it is broken; that it holds, only events can.
                return None
            result = Result(
                id=invariant,
                name=catalogue()[invariant].name,
                layer="audit",
                verdict=verdict,
                counts=check.looked_at(tallies) | _found(check, counted),
                witnesses=_witnesses(path, check),
                found=sum(n for (_, cause), n in counted.items() if cause is None),
                all_in="violations.parquet (--out)",
                detail=detail,
                replay=replay and f"{replay} --check {invariant}",
                seconds=time.monotonic() - started,
            )
            return _Ran(result, counted)

        with ThreadPoolExecutor(_ABREAST) as pool:
            done = [each for each in pool.map(run, checks.items()) if each]
        results = tuple(each.result for each in done)
        explained = Counter(
            {
                (each.result.id, rule, cause): n
                for each in done
                for (rule, cause), n in each.counted.items()
                if cause is not None
            }
        )
        shown = {}
        if pictures and seen.rows:
            say("numbers of the plots")
            shown = draw(evidence, seen, read.profile, read.own)
        gone = 0
        if night:
            ran = [result.id for result in results if result.verdict is not Verdict.NOT_TESTED]
            found = all_found(evidence, scratch / ("found" if carried else "findings"), ran)
            gone = withdrawn(carried, found, ran) if carried else 0
            if next_state:
                settle(night, evidence, read, seen.brokers, found, ran, next_state, batch)
        return Audit(
            seen, tallies, results, explained, scratch / "findings", repeated, shown, gone,
            evidence.options.skew_us, skew_seen_us, unreadable_rows,
        )  # fmt: skip


def _written(found: DataFrame, path: Path) -> DataFrame:
    """The findings, computed."""
    found.write.mode("overwrite").parquet(str(path))
    return found.sparkSession.read.schema(FINDINGS).parquet(literal(path))


@contextmanager
def gathered(
    log: DataFrame | EventLog,
    options: Options | None = None,
    store: Stored | None = None,
    *,
    pictures: bool = False,
) -> Iterator[tuple[Evidence, Overview, int]]:
    """The evidence, with what several checks read kept until the end; and how many rows were given twice.

    Raises:
        InputError: as `audit`.
    """
    with _gathered(log, options, store, pictures=pictures) as (evidence, seen, repeated, _):
        yield evidence, seen, repeated


@contextmanager
def _gathered(
    log: DataFrame | EventLog,
    options: Options | None = None,
    store: Stored | None = None,
    carried: Carried | None = None,
    *,
    pictures: bool = False,
    scratch: Path | None = None,
) -> Iterator[tuple[Evidence, Overview, int, Looked]]:
    """As `gathered`, with what earlier nights left; and the rows that were looked at."""
    with ExitStack() as kept:

        def keep(frame: DataFrame) -> DataFrame:
            kept.callback(frame.unpersist)
            return frame.persist(StorageLevel.MEMORY_AND_DISK)

        log = log if isinstance(log, EventLog) else EventLog.of(log)
        options = options or Options()
        given_log = log
        if options.broadcast:
            log = EventLog.of(by_member(log.rows, options.broadcast))
        folder = Path(kept.enter_context(TemporaryDirectory(prefix="mqproof-doubt-", dir=scratch)))
        options, plan = _planned(options, given_log, store, folder, pictures=pictures)
        passed, profiled, seen = _passed(log, plan, keep)
        if seen.newer_rows and log.files:
            # What Spark reads of the files is without these rows.
            log = EventLog.of(log.rows)
            passed, profiled, seen = _passed(log, plan, keep)
        given = seen.rows
        if seen.repeated_rows:
            log = EventLog.of(_without_repeats(log.rows))
            passed, profiled, seen = _passed(log, plan, keep)
            _refuse_namesakes(seen)
        tonight, rows, own = profiled, seen.rows, log
        if carried:
            profiled, seen = carried.count(tonight, seen)
            given_before = EventLog.of(carried.beside(own.rows, tonight, seen.brokers))
            passed = passed.plus(sum_up(given_before, plan, keep))
            log = log.plus(given_before)
        # In a small log it costs less to read all of it again.
        apart = folder if plan or seen.rows > _SMALL else None
        for frame in (store.doubtful, store.bounds) if store else ():
            keep(frame)
        evidence = gather(log, seen.brokers, options, store, passed, profiled, apart, keep)
        if carried:
            # What is carried of messages is not all that a node told; checks of its order rest on more.
            told = name_broker(carried.told(own.rows), seen.brokers)
            evidence = replace(carried.amend(evidence, seen.brokers), log=told)
        # In this order: what is kept is planned without what is kept later.
        for frame in (evidence.doubted, evidence.messages, evidence.troubled, evidence.steps):
            keep(frame)
        # Known to be few, they are brought to the rows, which then need not be sorted by message.
        evidence.doubtful.count()
        evidence = replace(evidence, **_cut_off(evidence))
        yield evidence, seen, given - rows, Looked(own, tonight, name_broker(log.rows, seen.brokers))


def _passed(log: EventLog, plan: BucketPlan | None, keep: Keep) -> tuple[Passed, DataFrame, Overview]:
    """The pass over the log, its profile, and what that tells."""
    passed = sum_up(log, plan, keep)
    profiled = keep(summed_up(passed.told))
    return passed, profiled, overview(profiled)


def _planned(
    options: Options, log: EventLog, store: Stored | None, folder: Path, *, pictures: bool
) -> tuple[Options, BucketPlan | None]:
    """The options, with what follows from the log's size and ids; and how its buckets are summed up, if they
    are."""
    rows = log.count()
    if pictures:
        options = replace(options, sample=max(1, min(_SAMPLE_MAX, rows // _SAMPLE_ROWS)))
    if options.exact is None:
        options = replace(options, exact=rows <= _SMALL)
    if options.exact and rows <= _SMALL:
        return options, None
    expected, prefix = guess(log)
    options = replace(options, id_prefix=prefix)
    return options, plan_buckets(log, options, store, expected, folder)


def _cut_off(evidence: Evidence) -> dict[str, Any]:
    """The small tables, planned without what they were made of: with two dozen checks on top of it that is
    most of an audit's time, where the log is small."""
    if not str(evidence.log.sparkSession.sparkContext.master).startswith("local["):
        return {}  # an executor that is lost would take them along

    def cut_off(name: str) -> DataFrame:
        kept: DataFrame = getattr(evidence, name).localCheckpoint(eager=False)
        return kept

    with ThreadPoolExecutor(_ABREAST) as pool:
        return dict(zip(_FEW, pool.map(cut_off, _FEW), strict=True))


def judge(
    check: Check, tallies: Mapping[str, int], counted: Mapping[tuple[str, str | None], int], missing_rows: int
) -> tuple[Verdict, str]:
    """The verdict and, when there is something to say, why.

    A missing row can be the very delivery, send or rebalance that explains a violation: only more violations
    than missing rows are proof, and without violations missing rows forbid "held".
    """
    violations = sum(n for (_, cause), n in counted.items() if cause is None)
    causes: Counter[str] = Counter()
    for (_, cause), n in counted.items():
        if cause is not None:
            causes[cause] += n
    holes = f"{missing_rows} rows of the log are missing or unreadable"
    if violations > missing_rows:
        rules = ", ".join(sorted(f"{rule} {n}" for (rule, cause), n in counted.items() if cause is None))
        return Verdict.VIOLATED, f"{rules}; {holes}" if missing_rows else rules
    if violations:
        return Verdict.UNKNOWN, f"{violations} violations found, but {holes} and may explain them"
    if reason := check.blind(tallies, causes):
        return Verdict.UNKNOWN, reason
    if missing_rows:
        return Verdict.UNKNOWN, holes
    return Verdict.HELD, ""


def _with_skew(evidence: Evidence) -> tuple[Evidence, int]:
    """How far clocks disagree, by the messages that are looked at: allowed for, unless the user says how good
    they are."""
    row = evidence.messages.agg(skew_seen()).first()
    assert row is not None, "an aggregate without keys has one row"
    options, seen_us = evidence.options, row[0]
    allowed_us = options.skew_us
    if not options.is_skew_given:
        allowed_us = max(allowed_us, min(seen_us, _SKEW_MAX_US))
    return replace(evidence, options=replace(options, skew_us=allowed_us)), seen_us


def _not_tested(invariant: str, check: Check) -> Result:
    needed = " or ".join(name.replace("_", " ") for name in check.needs)
    name = catalogue()[invariant].name
    return Result(invariant, name, "audit", Verdict.NOT_TESTED, detail=f"the input has no {needed}")


def write_violations(audit: Audit, path: Path) -> int:
    """All violations into one Parquet file, batch by batch. Returns how many."""
    found = _dataset(audit.findings)
    rows = 0
    with pq.ParquetWriter(path, found.schema) as writer:
        batches: list[pa.RecordBatch] = []
        for batch in found.scanner(filter=pc.field("cause").is_null()).to_batches():
            batches.append(batch)
            rows += batch.num_rows
            # Small batches together: a row group each would be mostly overhead.
            if sum(map(len, batches)) >= _ROW_GROUP:
                writer.write_table(pa.Table.from_batches(batches))
                batches = []
        if sum(map(len, batches)):
            writer.write_table(pa.Table.from_batches(batches))
    return rows


def violations(audit: Audit) -> list[dict[str, Any]]:
    """All violations in memory: for tests and small logs."""
    findings = _dataset(audit.findings)
    rows: list[dict[str, Any]] = findings.to_table(filter=pc.field("cause").is_null()).to_pylist()
    return rows


def _without_repeats(log: DataFrame) -> DataFrame:
    """A row that was collected twice (the same file under two names) counts once."""
    return log.dropDuplicates(["node", "seq", "ts", "kind", "msg_id"])


def _refuse_namesakes(seen: Overview) -> None:
    """Two different rows have one node and one number: two nodes go by one name."""
    if seen.repeating_nodes:
        raise InputError(
            f"node {seen.repeating_nodes[0]!r}: {seen.repeated_rows} sequence numbers are given twice, to "
            "different events; expected one name for each node, and one numbering across its restarts"
        )


def _tallies(evidence: Evidence, seen: Overview) -> dict[str, int]:
    """How much there is of what checks look at. Runs one job."""
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
    # In whatever night they told of them; without any, not all is read for nothing.
    has_slaves = evidence.profile.where(kind.isin(Kind.HA_TRANSFER, Kind.HA_ACK)).head(1)
    followed = masters(evidence.log if has_slaves else evidence.rare)
    told = _numbers(
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
    )
    clean = dict(evidence.buckets.clean) if evidence.buckets else {}
    # A clean bucket has messages that were sent, and nothing else.
    clean["messages_sent"] = clean.get("messages", 0)
    return {
        **told,
        # Attempts of which nobody says where they went tell nothing.
        "retries_told": told["sends_again"] if told["sends_told"] else 0,
        "broadcast_groups": len(evidence.options.broadcast),
        "replicas": 0,  # of stores, which tell below
        "members": 0,
        "events": seen.rows,
        "deliveries": seen.by_kind.get(Kind.DELIVER, 0),
        **{name: told[name] + clean.get(name, 0) for name in TALLIED},
        **(_store_tallies(evidence.store) if evidence.store else {}),
    }


def _of_profile() -> dict[str, Column]:
    """How much there is of what only some logs have."""
    kind = f.col("kind")
    told = {
        **{f"{each}_events": kind == each for each in Kind},
        "scheduled_appends": (kind == Kind.APPEND) & (f.col("topic") == SCHEDULE_TOPIC),
        "sends_told": (kind == Kind.SEND) & f.col("stated").isNotNull(),
    }
    return {name: f.sum(f.when(is_told, f.col("rows"))) for name, is_told in told.items()}


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


def _numbers(*asked: tuple[DataFrame, Mapping[str, Column]]) -> dict[str, int]:
    """What aggregates of several tables are, by name; 0 where there is nothing. Runs one job."""
    told = []
    for table, aggregates in asked:
        row = table.agg(
            *[f.coalesce(each.cast("long"), f.lit(0)).alias(name) for name, each in aggregates.items()]
        )
        pairs = [part for name in aggregates for part in (f.lit(name), f.col(name))]
        told.append(row.select(f.explode(f.create_map(*pairs)).alias("name", "number")))
    return {row["name"]: row["number"] for row in reduce(DataFrame.unionAll, told).collect()}


def _dataset(folder: Path) -> ds.Dataset:
    """All findings below the folder; none where no check was run."""
    if parts := _parts(folder):
        return ds.dataset(parts, format="parquet")
    return ds.dataset(pa.Table.from_batches([], to_arrow_schema(FINDINGS)))


def _parts(folder: Path) -> list[str]:
    return sorted(str(part) for part in folder.rglob("*.parquet"))


def _counted(path: Path) -> dict[tuple[str, str | None], int]:
    """(rule, cause) to the number of findings."""
    parts = _parts(path)
    if not parts:
        return {}
    table = ds.dataset(parts, format="parquet").to_table(columns=["rule", "cause"])
    rows = table.group_by(["rule", "cause"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["rule"], row["cause"]): row["count_all"] for row in rows}


def _found(check: Check, counted: Mapping[tuple[str, str | None], int]) -> dict[str, int]:
    """Violations by rule, with their zeros, and what was explained."""
    found = {rule: counted.get((rule, None), 0) for rule in check.rules}
    for (_, cause), n in sorted(counted.items(), key=str):
        if cause is not None:
            found[cause] = found.get(cause, 0) + n
    return found


def _witnesses(path: Path, check: Check) -> tuple[Witness, ...]:
    """The earliest of each rule: later ones are often its consequences."""
    parts = _parts(path)
    if not parts:
        return ()
    found = ds.dataset(parts, format="parquet")
    witnesses: list[Witness] = []
    for rule in check.rules:
        violation = pc.field("cause").is_null() & (pc.field("rule") == rule)
        rows = found.to_table(filter=violation, columns=list(_SHOWN))
        earliest = rows.sort_by([("first_ts", "ascending"), ("msg_id", "ascending")]).slice(0, WITNESSES_MAX)
        witnesses += map(_witness, earliest.to_pylist())
    return tuple(witnesses)


_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset")
_SHOWN: Final = ("rule", "msg_id", "group", "client", *_PLACE, "first_ts", "last_ts", "evidence")


def _witness(row: Mapping[str, Any]) -> Witness:
    values = {name: str(row[name]) for name in _SHOWN if row[name] is not None and name != "evidence"}
    who = [f"{label} {row[name]}" for label, name in (("message", "msg_id"), ("group", "group")) if row[name]]
    where = "/".join(str(row[name]) for name in _PLACE if row[name] is not None)
    what = " ".join([*who, *([f"at {where}"] if where else [])])
    return Witness(f"{row['rule']}: {what}: {row['evidence']}", values)


def violations_by(audit: Audit, column: str) -> dict[str, int]:
    """How many violations there are by a column of schema.FINDINGS."""
    findings = _dataset(audit.findings)
    named = findings.to_table([column], filter=pc.field("cause").is_null() & pc.field(column).is_valid())
    counts = named.group_by([column]).aggregate([([], "count_all")]).to_pylist()
    return {row[column]: row["count_all"] for row in counts}


def violation_times(audit: Audit, width_us: int) -> list[tuple[int, str, str, int]]:
    """(ts, invariant, rule, count) of the violations that began in the `width_us` from then on."""
    violation = pc.field("cause").is_null() & pc.field("first_ts").is_valid()
    shown = {
        "ts": pc.field("first_ts") - audit.overview.first_ts,
        "invariant": pc.field("invariant"),
        "rule": pc.field("rule"),
    }
    counts: Counter[tuple[int, str, str]] = Counter()
    for batch in _dataset(audit.findings).scanner(shown, filter=violation).to_batches():
        bucket = pc.cast(
            pc.floor(pc.divide(pc.cast(batch["ts"], "float64", safe=False), float(width_us))), "int64"
        )
        rows = pa.table({"bucket": bucket, "invariant": batch["invariant"], "rule": batch["rule"]})
        for row in rows.group_by(rows.column_names).aggregate([([], "count_all")]).to_pylist():
            at = audit.overview.first_ts + row["bucket"] * width_us
            counts[at, row["invariant"], row["rule"]] += row["count_all"]
    return [(*key, count) for key, count in sorted(counts.items())]


__all__ = [
    "Audit",
    "Overview",
    "audit",
    "judge",
    "overview",
    "violations",
    "violations_by",
    "violation_times",
    "write_violations",
]
