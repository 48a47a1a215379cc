"""`mqproof audit run`, `mqproof audit explain` and `mqproof audit generate`."""

import re
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from report.model import Exit, Verdict, exit_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_audit.audit import Audit
    from spark_audit.inputs import Inputs
    from spark_audit.read import Log

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
audit_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    audit_app, name="audit", help="Find lost, duplicated, reordered and phantom messages with Spark."
)

_EXAMPLES = """

Examples:

  mqproof audit generate --events 100000 --out build/log --anomaly lost=3 --anomaly duplicate=5

  mqproof audit run --events build/log --out build/audit

  mqproof audit run --store broker-a=/var/rocketmq/store --events build/log

  mqproof audit run --events 'logs/*.ndjson' --check DELIV-1 --json result.json
"""

_Skew = Annotated[
    int | None,
    typer.Option(min=0, help="How far clocks of two nodes may disagree; else 100, or what the log shows."),
]
_Trace = Annotated[
    list[str] | None,
    typer.Option(help="Message traces: exported text, a folder of it, or a store that has their topic."),
]


@app.callback()
def _root() -> None:
    """Keeps `audit` a command of its own."""


@audit_app.command(epilog=_EXAMPLES)
def run(
    paths: Annotated[list[str] | None, typer.Argument(help="More event logs, as after a shell's *.")] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(help="Event log (.ndjson, .ndjson.gz, .ndjson.zst, .parquet), folder, pattern."),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(help="Store directory of a broker, DIR or BROKER=DIR; of a slave, BROKER:ID=DIR."),
    ] = None,
    trace: _Trace = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report.html, report.json, junit.xml, violations.parquet.")
    ] = None,
    check: Annotated[list[str] | None, typer.Option(help="Only this invariant, e.g. DELIV-1.")] = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    json: Annotated[Path | None, typer.Option(help="Write the result as JSON.")] = None,
    skew_ms: _Skew = None,
    flush: Annotated[
        str | None, typer.Option(help="SYNC_FLUSH or ASYNC_FLUSH: for brokers whose log does not say.")
    ] = None,
    broadcast: Annotated[
        list[str] | None, typer.Option(help="Group of which every member gets every message.")
    ] = None,
    index_slots: Annotated[
        int, typer.Option(min=1, help="maxHashSlotNum of the brokers, where it is not RocketMQ's own.")
    ] = 5_000_000,
) -> None:
    """Judge event logs, store directories and message traces; docs/audit-checks.md says by what.

    A store should not change meanwhile: audit one of a broker that is shut down, or a copy.

    Exit code: 0 all held, 1 a violation, 2 bad input, 3 inconclusive, 4 Spark or Java is missing or failed.
    """
    from spark_audit.checks import CHECKS, EVENT_CHECKS, STORE_CHECKS
    from spark_audit.traces import TRACED

    inputs, directories = [*(events or []), *(paths or [])], store or []
    if not (inputs or directories or trace):
        _fail("--events: name at least one event log, folder or pattern, or a --store")
    possible = {*(EVENT_CHECKS if inputs else ()), *(STORE_CHECKS if directories else ())}
    possible |= set(TRACED if trace else ())
    named = [part for text in check or [] for part in text.split(",")]
    wanted = named or [name for name in CHECKS if name in possible]
    if unknown := [name for name in wanted if name not in CHECKS]:
        _fail(f"--check: no check for {', '.join(unknown)}, expected one of {', '.join(CHECKS)}")
    if idle := [name for name in wanted if name not in possible]:
        judged = "--events" if CHECKS[idle[0]].of_events else "a --store"
        _fail(f"--check {idle[0]}: it judges {judged}, and none is given")
    if flush not in (None, "SYNC_FLUSH", "ASYNC_FLUSH"):
        _fail(f"--flush: {flush!r}, expected SYNC_FLUSH or ASYNC_FLUSH")

    from pyspark.sql import SparkSession

    from spark_audit.inputs import InputError, Inputs, find_files
    from spark_audit.session import SessionOptions, open_session
    from spark_audit.store import name_stores
    from spark_audit.traces import find_traces
    from spec.spark import SessionError

    try:
        # Before Spark starts, which takes seconds: a wrong path is told at once.
        found = find_files(inputs) if inputs else Inputs(())
        stores = name_stores(directories)
        traces = find_traces(trace or [])
        input_bytes = sum(file.stat().st_size for file in found.files)
        borrowed = SparkSession.getActiveSession() is not None
        spark = open_session(SessionOptions(master=master, memory=memory, input_bytes=input_bytes))
    except InputError as error:
        _fail(str(error))
    except SessionError as error:
        _fail(str(error), Exit.TOOL)
    # A session that was there before (a notebook's, a test's) is not ours to stop.
    scratch = Path(tempfile.mkdtemp(prefix="mqproof-audit-"))
    try:
        again = [part for path in inputs for part in ("--events", path)]
        again += [part for text in directories for part in ("--store", text)]
        again += [part for text in trace or [] for part in ("--trace", text)]
        request = _Request(
            found,
            stores,
            index_slots,
            wanted,
            skew_ms,
            flush,
            tuple(broadcast or ()),
            shlex.join(again),
            traces,
        )
        code = _audit(spark, scratch, request, out, json)
    finally:
        if not borrowed:
            spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Request:
    found: "Inputs"
    stores: dict[str, Path]
    index_slots: int
    wanted: list[str]
    skew_ms: int | None
    flush: str | None
    broadcast: tuple[str, ...]
    again: str
    """The options that name the input, for the command that replays a finding."""
    traces: tuple[list[Path], list[Path]] = ([], [])
    """Stores and text files, as find_traces gives them."""


def _audit(
    spark: "SparkSession", scratch: Path, request: _Request, out: Path | None, json: Path | None
) -> int:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types
    from pyspark.errors import PySparkException

    from report import terminal
    from report.write import write_report
    from spark_audit.audit import audit, write_violations
    from spark_audit.checks import CHECKS
    from spark_audit.evidence import Options
    from spark_audit.inputs import InputError
    from spark_audit.read import read_files
    from spark_audit.store import read_stores
    from spark_audit.summary import summarise
    from spark_audit.timelines import with_timelines

    started = time.monotonic()
    try:
        for repeat, original in request.found.repeats:
            _say(f"{repeat} is {original} again: counted once")
        log = read_files(spark, request.found, scratch)
        _say(f"reading {len(request.found.files)} files and {len(request.stores)} stores")
        stored = read_stores(spark, request.stores, scratch, request.index_slots) if request.stores else None
        corrupt_rows = log.corrupt.count()
        corrupt = (
            [(row["file"], row["line"]) for row in log.corrupt.limit(10).collect()] if corrupt_rows else []
        )
        done = audit(
            log.events,
            scratch,
            options=Options(**_clocks(request.skew_ms), flush=request.flush, broadcast=request.broadcast),
            store=stored,
            checks={name: CHECKS[name] for name in CHECKS if name in request.wanted},
            unreadable_rows=corrupt_rows,
            replay=f"mqproof audit run {request.again}",
            progress=_say,
        )
        told = with_timelines(spark, done.results, log.events, done.overview.brokers, stored)
        done = replace(done, results=told)
        if any(request.traces):
            done = _with_traces(spark, done, request)
    except InputError as error:
        _fail(str(error))
    except (PySparkException, Py4JError) as error:
        _fail(*_blame(error))
    report = summarise(done, log, request.stores, time.monotonic() - started, corrupt, corrupt_rows)
    terminal.show(report)
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for name in ("report.json", "junit.xml", "report.html"):
                write_report(report, out / name)
            rows = write_violations(done, out / "violations.parquet")
            if corrupt_rows:
                _keep_aside(log, out / "unreadable")
            _say(f"wrote {out / 'report.html'}, report.json, junit.xml and {rows} violations.parquet")
        if json is not None:
            write_report(report, json.with_suffix(".json") if json.suffix != ".json" else json)
    except OSError as error:
        _fail(f"{error.filename or out or json}: {error.strerror}")
    return exit_code(report.results)


def _with_traces(spark: "SparkSession", done: "Audit", request: _Request) -> "Audit":
    """The audit with what traces show, judged by them where nothing better was given."""
    from spark_audit.traces import judge_traces, read_traces

    traces = read_traces(spark, *request.traces)
    judged = [result.id for result in done.results if result.verdict is not Verdict.NOT_TESTED]
    shown = judge_traces(traces, done.skew_us, judged=judged)
    unreadable = traces.unreadable.count()
    kept = tuple(result for result in shown if result.id in request.wanted)
    return replace(done, results=done.results + kept, unreadable_traces=unreadable)


def _clocks(skew_ms: int | None) -> dict[str, Any]:
    """What the user says of the clocks, for Options."""
    return {} if skew_ms is None else {"skew_us": skew_ms * 1000, "is_skew_given": True}


def _keep_aside(log: "Log", folder: Path) -> None:
    rows: DataFrame = log.corrupt
    rows.coalesce(1).write.mode("overwrite").json(str(folder))


@audit_app.command(name="explain", epilog=_EXAMPLES)
def explain_message(
    msg_id: Annotated[str, typer.Argument(help="The producer's unique key, else the broker's message id.")],
    events: Annotated[
        list[str] | None, typer.Option(help="Event log, folder or pattern, as for audit run.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Store directory of a broker, DIR or BROKER=DIR.")
    ] = None,
    trace: _Trace = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    index_slots: Annotated[
        int, typer.Option(min=1, help="maxHashSlotNum of the brokers, where it is not RocketMQ's own.")
    ] = 5_000_000,
) -> None:
    """Print the whole life of one message: what every input says of it, in order of time.

    Exit code: 0 some input knows it, 2 bad input, 3 none does, 4 Spark or Java is missing or failed.
    """
    if not (events or store or trace):
        _fail("--events: name at least one event log, folder or pattern, or a --store")

    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from spark_audit.explain import lives
    from spark_audit.inputs import InputError, Inputs, find_files
    from spark_audit.profile import overview, profile
    from spark_audit.read import read_files
    from spark_audit.session import SessionOptions, open_session
    from spark_audit.store import name_stores, read_stores
    from spark_audit.traces import find_traces, read_traces
    from spec.spark import SessionError

    scratch = Path(tempfile.mkdtemp(prefix="mqproof-audit-"))
    borrowed, spark = True, None
    try:
        found = find_files(events) if events else Inputs(())
        stores = name_stores(store or [])
        traces = find_traces(trace or [])
        borrowed = SparkSession.getActiveSession() is not None
        spark = open_session(SessionOptions(master=master, memory=memory))
        log = read_files(spark, found, scratch).events
        stored = read_stores(spark, stores, scratch, index_slots) if stores else None
        traced = read_traces(spark, *traces).told if any(traces) else None
        brokers = overview(profile(log)).brokers
        steps = lives(spark, [msg_id], log, brokers, stored, traced).get(msg_id)
    except InputError as error:
        _fail(str(error))
    except SessionError as error:
        _fail(str(error), Exit.TOOL)
    except (PySparkException, Py4JError) as error:
        _fail(*_blame(error))
    finally:
        if spark is not None and not borrowed:
            spark.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    if not steps:
        _fail(f"{msg_id}: no input knows this message", Exit.INCONCLUSIVE)
    for step in steps:
        typer.echo(step.line())


@audit_app.command(epilog=_EXAMPLES)
def generate(
    events: Annotated[int, typer.Option(help="About so many events.")],
    out: Annotated[Path, typer.Option(help="Folder to fill; must be empty.")],
    anomaly: Annotated[list[str] | None, typer.Option(help="NAME=COUNT; see below.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same log.")] = 1,
    file_format: Annotated[str, typer.Option("--format", help="parquet or ndjson")] = "parquet",
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
) -> None:
    """Make an event log with planted anomalies; _truth.parquet lists the violations that an audit must find.

    Spark writes it, in parts, of any size; the same seed gives the same log on any number of cores.

    Anomalies: lost, duplicate, double_append, phantom, reordered, skipped, offset_regression, flush_lost.

    Exit code: 0 written, 2 bad input, 4 Spark or Java is missing or failed.
    """
    if file_format not in ("parquet", "ndjson"):
        _fail(f"--format: {file_format!r}, expected parquet or ndjson")

    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from spark_audit.generate import Wish, prepare
    from spark_audit.generate import generate as write_log
    from spark_audit.scenario import ScenarioError
    from spark_audit.session import SessionOptions, open_session
    from spec.spark import SessionError

    wish = Wish(events, _anomalies(anomaly or []), seed, file_format)
    borrowed, spark = True, None
    try:
        # Before Spark starts, which takes seconds: a wrong wish is told at once.
        prepare(wish, out)
        borrowed = SparkSession.getActiveSession() is not None
        spark = open_session(SessionOptions(master=master, memory=memory))
        done = write_log(spark, wish, out)
    except (ScenarioError, FileExistsError) as error:
        _fail(str(error))
    except SessionError as error:
        _fail(str(error), Exit.TOOL)
    except OSError as error:
        _fail(f"{error.filename or out}: {error.strerror}")
    except (PySparkException, Py4JError) as error:
        _fail(*_blame(error))
    finally:
        if spark is not None and not borrowed:
            spark.stop()
    typer.echo(
        f"{out}: {done.events} events of {done.messages} messages in {len(done.files)} files, "
        f"{done.expected} violations to find (seed {seed})"
    )


def _anomalies(wishes: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for wish in wishes:
        name, _, count = wish.partition("=")
        if not count.isdecimal():
            _fail(f"--anomaly: {wish!r}, expected NAME=COUNT, e.g. lost=3")
        counts[name] = counts.get(name, 0) + int(count)
    return counts


def _blame(error: Exception) -> tuple[str, int]:
    """One line and an exit code for what Spark threw."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if damaged := re.search(r"FAILED_READ_FILE.*?reading file (?:file:/*)?(/?\S+)\.\s", line):
            return f"/{damaged[1].lstrip('/')}: damaged, cannot be read to its end", Exit.USAGE
    # The innermost cause says most; above it there is only where Spark was at the time.
    causes = (
        [line for line in lines if line.startswith(("Caused by:", ": "))] or lines or [type(error).__name__]
    )
    return f"Spark failed: {causes[-1].removeprefix('Caused by:').removeprefix(':').strip()[:300]}", Exit.TOOL


def _say(line: str) -> None:
    typer.echo(f"audit: {line}", err=True)


def _fail(message: str, code: int = Exit.USAGE) -> NoReturn:
    print(f"mqproof audit: {message}", file=sys.stderr)
    raise typer.Exit(code)


__all__ = ["app"]
