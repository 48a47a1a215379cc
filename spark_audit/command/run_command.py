"""`mqproof audit run`: judge event logs, store directories and message traces."""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from mqproof.report.console import stages
from mqproof.report.model import Report, Table, Verdict, exit_code
from mqproof.report.printable import counted
from mqproof.spark_audit.command.audit_inputs import AuditInputs, find_inputs
from mqproof.spark_audit.command.conversions import Conversions, Mapped, converted, mapping_errors_shown
from mqproof.spark_audit.command.engine_choice import EngineOptions
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.command.judged_spans import SpanRequest, with_facts, with_spans
from mqproof.spark_audit.command.local_copies import local_copies
from mqproof.spark_audit.command.option_groups import (
    DAY_US,
    FORGET_DAYS,
    ClusterOptions,
    ForgetDays,
    IndexSlots,
    Metrics,
    Spanned,
    SparkOptions,
    Trace,
    examples,
)
from mqproof.spark_audit.command.outputs import try_file, try_folder, write_outputs
from mqproof.spec.events import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqproof.spark_audit.checks import Check
    from mqproof.spark_audit.engine.embedded.database import Database
    from mqproof.spark_audit.evidence.history import History
    from mqproof.spark_audit.incremental.state_folder import IncrementalRun
    from mqproof.spark_audit.judging.outcome import Audit

EXAMPLES: Final = examples(
    "run --events build/log --out build/audit",
    "run --store broker-a=/var/rocketmq/store --events build/log",
    "run --events 'logs/*.ndjson' --id DELIV-1 --json result.json",
    "run --mapping kafka.toml",
    "run --events logs/2026-11-22 --state state --out reports/2026-11-22",
)


@dataclass(frozen=True, slots=True)
class InputOptions:
    """The audited inputs."""

    events: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Event log (.ndjson, .ndjson.gz, .ndjson.zst, .parquet), folder, pattern."
        ),
    ] = None
    store: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DIR",
            help="Store directory of a broker, DIR or BROKER=DIR; of a slave, BROKER:ID=DIR.",
        ),
    ] = None
    trace: Trace = None
    mapping: Mapped = None
    spans: Spanned = None
    sampling: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="The share of messages that all nodes record; with --spans, of sampled traces. 1: all.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        return {
            "--spans": self.spans,
            "--sampling": self.sampling,
            "--events": self.events,
            "--store": self.store,
            "--trace": self.trace,
            "--mapping": self.mapping,
        }

    @property
    def is_sampled(self) -> bool:
        """Whether the events are of a sample of the messages; with spans, the rate is theirs."""
        return self.has_events and not self.spans and self.sampling is not None and self.sampling < 1

    @property
    def has_events(self) -> bool:
        return bool(self.events or self.mapping)


@dataclass(frozen=True, slots=True)
class IncrementalOptions:
    """The state that one run leaves for the next."""

    state: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the state between incremental runs.")
    ] = None
    late_s: Annotated[int, typer.Option(min=0, help="With --state: maximum time between related events.")] = (
        3600
    )
    forget_days: ForgetDays = FORGET_DAYS


def run(
    *,
    paths: Annotated[list[str] | None, typer.Argument(help="More event logs.")] = None,
    inputs: InputOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for report.html, .json, .md, .sarif, junit.xml and violations.parquet.",
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="GLOB", help="Judge only matching invariants; may be repeated."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    metrics: Metrics = None,
    cluster: ClusterOptions,
    index_slots: IndexSlots = None,
    incremental: IncrementalOptions,
    engine: EngineOptions,
    spark: SparkOptions,
) -> None:
    """Judge event logs, store directories and message traces; see docs/explanation/audit-checks.md.

    A store must not change during the audit: stop its broker first, or audit a copy.

    With --state, each run continues the previous one: it reports only new violations and saves its state.

    Small inputs are judged on DuckDB, without Java; see docs/how-to/audit-options.md.

    Exit codes: 0 all held; 1 a violation; 2 bad input; 3 inconclusive; 4 the engine is missing or failed.
    """
    inputs = replace(inputs, events=[*(inputs.events or []), *(paths or [])])
    with local_copies(inputs.events or []) as copies:
        options = RunOptions(
            replace(inputs, events=copies.paths),
            cluster,
            incremental,
            engine,
            spark,
            out,
            json,
            ids or [],
            index_slots,
            origins=copies.origins,
            replay=_repeated(inputs, cluster, index_slots),
            metrics=metrics,
        )
        code = judge(options)
    raise typer.Exit(code)


def _repeated(inputs: InputOptions, cluster: ClusterOptions, index_slots: int | None) -> str:
    """Return the command that repeats the run with the same input."""
    arguments = {**inputs.given(), **cluster.given(), "--index-slots": index_slots}
    return f"mqproof audit run {shlex.join(_arguments(arguments))}"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is judged, and how."""

    inputs: InputOptions
    cluster: ClusterOptions
    incremental: IncrementalOptions
    engine: EngineOptions
    spark: SparkOptions
    out: Path | None
    json: Path | None
    ids: list[str]
    index_slots: int | None = None
    origins: tuple[str, ...] = ()
    """Where the event logs come from, if they are not the user's."""
    tables: tuple[Table, ...] = ()
    """More tables for the report."""
    replay: str | None = None
    """The command that repeats the run, if it is not that of `audit run`."""
    metrics: Path | None = None


def judge(options: RunOptions) -> int:
    """Judge the inputs, write the outputs, and return the exit code. Errors end the command with one line."""
    from mqproof.spark_audit.sources.inputs import InputError

    wanted = _wanted(options.ids, options.inputs)
    if options.inputs.is_sampled and options.incremental.state:
        fail("--sampling: expected a single run, without --state")
    try_folder("--out", options.out)
    try_folder("--state", options.incremental.state)
    try_file("--json", options.json)
    try_file("--metrics", options.metrics)
    options.spark.settings()  # fails before the inputs are read
    request = _request(options, wanted)
    try:
        return _run(request, options.engine, options.spark, options.out, options.json)
    except InputError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or options.out or options.json}: {error.strerror}")


def _run(
    request: "_Request", engine: EngineOptions, spark: SparkOptions, out: Path | None, json: Path | None
) -> int:
    with converted(request.inputs.conversions, request.inputs.found) as found:
        request = replace(request, inputs=replace(request.inputs, found=found))
        return request.inputs.on_engine(
            engine.engine,
            spark,
            lambda session, scratch: _audit(session, scratch, request, out, json),
            _carried(request.state),
        )


def _carried(state: Path | None) -> tuple[Path, ...]:
    if state is None:
        return ()
    from mqproof.spark_audit.incremental.state_folder import carried_files

    return carried_files(state)


def _wanted(ids: list[str], inputs: InputOptions) -> list[str]:
    """Return the invariants to judge: those that match, or all that these inputs allow."""
    from mqproof.spark_audit.checks import CHECKS, EVENT_CHECKS, STORE_CHECKS

    if inputs.sampling is not None and not 0 < inputs.sampling <= 1:
        fail(f"--sampling {inputs.sampling:g}: expected a rate above 0 and up to 1")
    if inputs.sampling is not None and not (inputs.spans or inputs.has_events):
        fail("--sampling: expected event logs or --spans")
    if inputs.is_sampled and (inputs.store or inputs.trace):
        fail("--sampling: a sample of events cannot be judged with --store or --trace")
    if not (inputs.has_events or inputs.store or inputs.trace or inputs.spans):
        fail("--events: name at least one event log, folder or pattern, or a --store")
    possible = {*(EVENT_CHECKS if inputs.has_events else ()), *(STORE_CHECKS if inputs.store else ())}
    if inputs.is_sampled:
        from mqproof.spark_audit.judging.sample import SAMPLED

        possible = set(SAMPLED)
    if inputs.trace:
        from mqproof.spark_audit.sources.trace.traces import TRACED

        possible |= set(TRACED)
    if inputs.spans:
        from mqproof.spark_audit.sources.otel.spans import SPANNED

        possible |= set(SPANNED)
    if not ids:
        return [name for name in CHECKS if name in possible]
    wanted: list[str] = []
    for glob in (part for text in ids for part in text.split(",")):
        if not (matching := [name for name in CHECKS if fnmatchcase(name, glob)]):
            fail(f"--id: no check for {glob}, expected one of {', '.join(CHECKS)}")
        if possible.isdisjoint(matching):
            if inputs.is_sampled:
                fail(f"--id {glob}: a sample of the messages does not suffice for it")
            judged = "--events" if CHECKS[matching[0]].of_events else "a --store"
            fail(f"--id {glob}: it judges {judged}, but none is given")
        wanted += [name for name in matching if name in possible and name not in wanted]
    return wanted


@dataclass(frozen=True, slots=True)
class _Request:
    inputs: AuditInputs
    wanted: list[str]
    allowed: dict[str, Any]
    """The user's statements about clocks, brokers and groups, for Options."""
    sampling: float | None
    tables: tuple[Table, ...]
    replay: str
    """The command that repeats the run with the same input."""
    state: Path | None
    late_us: int
    forget_us: int
    metrics: Path | None = None

    @property
    def event_sampling(self) -> float | None:
        """The rate at which nodes record messages; None if they record all."""
        of_events = self.inputs.has_events and not self.inputs.spans
        return self.sampling if of_events and (self.sampling or 1) < 1 else None

    def of_spans(self) -> SpanRequest:
        return SpanRequest(self.sampling, self.wanted, self.allowed, self.replay)

    def checks(self) -> "dict[str, Check]":
        """Return the checks whose input is given. Results from traces need no check."""
        from mqproof.spark_audit.checks import CHECKS, EVENT_CHECKS, STORE_CHECKS

        given = {
            *(EVENT_CHECKS if self.inputs.has_events else ()),
            *(STORE_CHECKS if self.inputs.stores else ()),
        }
        return {name: check for name, check in CHECKS.items() if name in self.wanted and name in given}


def _request(options: RunOptions, wanted: list[str]) -> _Request:
    """Find the inputs and return the request.

    This happens before Spark starts, which takes seconds, so that a wrong path is reported at once.
    """
    from mqproof.spark_audit.sources.inputs import InputError

    given, incremental = options.inputs, options.incremental
    config = options.cluster.config()
    allowed = options.cluster.allowed(config)
    try:
        inputs = find_inputs(
            given.events or [],
            given.store or [],
            given.trace or [],
            options.index_slots or config.index_slots,
            _conversions(given, incremental),
            given.spans or [],
        )
    except InputError as error:
        fail(str(error))
    return _Request(
        inputs=replace(inputs, found=replace(inputs.found, origins=options.origins)),
        wanted=wanted,
        allowed=allowed,
        sampling=given.sampling,
        tables=options.tables,
        replay=options.replay or _repeated(given, options.cluster, options.index_slots),
        state=incremental.state,
        late_us=incremental.late_s * 1_000_000,
        forget_us=incremental.forget_days * DAY_US,
        metrics=options.metrics,
    )


def _conversions(inputs: InputOptions, incremental: IncrementalOptions) -> Conversions:
    with mapping_errors_shown():
        found = Conversions.read(inputs.mapping or [])
    if incremental.state and (file := found.unnumbered()):
        fail(f"--state: {file} maps no column seq, which runs that follow each other need")
    return found


def _audit(
    session: "SparkSession | Database", scratch: Path, request: _Request, out: Path | None, json: Path | None
) -> int:
    from mqproof.report import terminal

    started_s = time.monotonic()
    pictures = out is not None or json is not None
    with _continued(session, request) as (continued, following):
        with stages("audit") as stage:
            judging = _Judging(session, scratch, request, continued, following, stage, pictures)
            done, report, skipped_rows = _judge(judging)
        # After the progress line has ended, so that it does not overwrite the report.
        terminal.show(report)
        write_outputs(report, done, skipped_rows, out, json)
        if request.metrics is not None:
            from mqproof.spark_audit.reporting.audit_metrics import measured, write_metrics

            write_metrics(request.metrics, measured(done, time.monotonic() - started_s))
            say(f"wrote {request.metrics}")
    return exit_code(report.results)


@contextmanager
def _continued(
    session: "SparkSession | Database", request: _Request
) -> "Iterator[tuple[IncrementalRun | None, Path | None]]":
    """Yield the incremental run that this one continues, and the folder of its new state."""
    if not request.state:
        yield None, None
        return
    from mqproof.spark_audit.incremental.state_folder import next_state, open_run

    spans_us = (request.late_us, request.forget_us)
    continued = open_run(session, request.state, *spans_us)
    # The old state stays until everything is written: an interrupted run is repeated.
    with next_state(continued) as following:
        yield continued, following


@dataclass(frozen=True, slots=True)
class _Judging:
    session: "SparkSession | Database"
    scratch: Path
    request: _Request
    continued: "IncrementalRun | None"
    following: Path | None
    stage: Callable[[str], None]
    pictures: bool

    def history(self) -> "History":
        from mqproof.spark_audit.evidence.history import NO_HISTORY

        if not self.continued:
            return NO_HISTORY
        from mqproof.spark_audit.incremental.continuation import Continuation

        return Continuation(self.continued, self.following)

    def with_history(self, report: Report, done: "Audit") -> Report:
        if not self.continued:
            return report
        from mqproof.spark_audit.incremental.all_runs import with_history

        return with_history(report, done, self.continued, self.following)


def _judge(judging: _Judging) -> tuple["Audit", Report, "DataFrame"]:
    """Return the audit, its report, and the file and line of each unreadable row."""
    from mqproof.spark_audit.audit import audit
    from mqproof.spark_audit.evidence.options import Options
    from mqproof.spark_audit.reporting.summary import summarise
    from mqproof.spark_audit.reporting.timelines import with_timelines

    started = time.monotonic()
    request, inputs = judging.request, judging.request.inputs
    continued, stage = judging.continued, judging.stage
    spark = cast("SparkSession", judging.session)
    for line in inputs.found.repeat_messages():
        say(line)
    stage(f"reading {counted(len(inputs.found.files), 'file')} and {counted(len(inputs.stores), 'store')}")
    log = inputs.read_log(judging.session, judging.scratch, stage)
    if request.event_sampling:
        from mqproof.spark_audit.judging.sample import require_sample

        require_sample(log.events, request.event_sampling)
    stored = inputs.read_stores(judging.session, judging.scratch)
    before = f" --state {shlex.quote(str(continued.before))}" if continued and continued.before else ""
    done = audit(
        log.event_log,
        judging.scratch,
        options=Options(**request.allowed),
        store=stored,
        checks=request.checks(),
        given_rows=log.rows,
        replay=f"{request.replay}{before}",
        progress=stage,
        pictures=judging.pictures,
        figures=request.metrics is not None,
        history=judging.history(),
    )
    stage("timelines of the findings")
    # The first half of a message's events may be in the carried state.
    events = log.events.select(*COLUMNS)
    if continued and continued.carried:
        events = events.unionByName(continued.carried.rows)
    event_log = with_timelines(spark, done.results, events, done.overview.brokers, stored)
    if request.event_sampling:
        from mqproof.spark_audit.judging.sample import of_sample

        event_log = of_sample(event_log, done.tallies, done.findings, request.event_sampling)
    done = replace(done, results=event_log)
    skipped_rows = log.corrupt
    if any(inputs.traces):
        stage("reading message traces")
        done, unreadable = _with_traces(judging.session, done, request)
        skipped_rows = skipped_rows.unionByName(unreadable)
    done, facts = with_spans(inputs, done, judging.scratch, request.of_spans())
    stage("summing up")
    corrupt_rows = done.unreadable_rows
    corrupt = [(row["file"], row["line"]) for row in log.corrupt.limit(10).collect()] if corrupt_rows else []
    report = summarise(done, log, inputs.stores, time.monotonic() - started, corrupt, corrupt_rows)
    return done, judging.with_history(with_facts(report, facts, request.tables), done), skipped_rows


def _with_traces(
    session: "SparkSession | Database", done: "Audit", request: _Request
) -> tuple["Audit", "DataFrame"]:
    """Return the audit with the results from traces, and the file and line of unreadable records.

    Traces judge only the invariants that no better input judges.
    """
    from mqproof.spark_audit.sources.trace.traces import judge_traces

    traces = request.inputs.read_traces(session)
    assert traces, "the caller has looked"
    judged = [result.id for result in done.results if result.verdict is not Verdict.NOT_TESTED]
    shown = judge_traces(traces, done.skew_us, judged=judged)
    unreadable = traces.unreadable.count()
    kept = tuple(result for result in shown if result.id in request.wanted)
    return replace(done, results=done.results + kept, unreadable_traces=unreadable), traces.unreadable


def _arguments(options: Mapping[str, Any]) -> list[str]:
    """Return the given options as arguments of the command line."""
    given = {name: value if isinstance(value, list) else [value] for name, value in options.items()}
    return [
        part
        for name, values in given.items()
        for value in values
        if value is not None
        for part in (name, str(value))
    ]
