"""`mqproof audit run`, `mqproof audit explain` and `mqproof audit generate`."""

import errno
import logging
import re
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from mqproof.report.console import stages, terminable
from mqproof.report.model import Exit, Report, Verdict, exit_code
from mqproof.report.printable import counted, one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqproof.spark_audit.audit import Audit
    from mqproof.spark_audit.checks import Check
    from mqproof.spark_audit.incremental.state_folder import IncrementalRun
    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.sources.broker_config import BrokerConfig
    from mqproof.spark_audit.sources.inputs import Inputs

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
audit_app = typer.Typer(no_args_is_help=True)
app.add_typer(
    audit_app, name="audit", help="Find lost, duplicated, reordered and phantom messages with Spark."
)


def _examples(*commands: str) -> str:
    """The end of a command's help."""
    return "\n\n".join(("Examples:", *(f"  mqproof audit {command}" for command in commands)))


_REBALANCE_S: Final = 20

_Conf = Annotated[
    list[str] | None, typer.Option(help="Setting of Spark, KEY=VALUE, e.g. spark.local.dir=/big.")
]

_Skew = Annotated[
    int | None,
    typer.Option(min=0, help="How far clocks of two nodes may disagree; else 100, or what the log shows."),
]
_Flush = Annotated[
    str | None, typer.Option(help="SYNC_FLUSH or ASYNC_FLUSH: for brokers whose log does not say.")
]
_Broadcast = Annotated[list[str] | None, typer.Option(help="Group of which every member gets every message.")]
_Orderly = Annotated[
    list[str] | None, typer.Option(help="Group that consumes in order, and does not say so itself.")
]
_Delays = Annotated[
    str | None, typer.Option(help="The brokers' messageDelayLevel, where it is not RocketMQ's: '1s 5s 1m'.")
]
_Rebalance = Annotated[
    int, typer.Option(min=0, help="How long a group may take to agree on owners after a member came or went.")
]
_BrokerConfig = Annotated[
    Path | None,
    typer.Option(help="The brokers' properties, or JSON: messageDelayLevel, flushDiskType, maxHashSlotNum."),
]

_ForgetDays = Annotated[
    int, typer.Option(min=1, help="A client or group that told nothing for so long is left behind.")
]
_FORGET_DAYS: Final = 30
_DAY_US: Final = 86_400_000_000

_IndexSlots = Annotated[
    int | None, typer.Option(min=1, help="maxHashSlotNum of the brokers, where it is not RocketMQ's own.")
]

_Trace = Annotated[
    list[str] | None,
    typer.Option(help="Message traces: exported text, a folder of it, or a store that has their topic."),
]


@app.callback()
def _root() -> None:
    """Keeps `audit` a command of its own."""


@audit_app.command(
    epilog=_examples(
        "run --events build/log --out build/audit",
        "run --store broker-a=/var/rocketmq/store --events build/log",
        "run --events 'logs/*.ndjson' --check DELIV-1 --json result.json",
        "run --events logs/2026-11-22 --carry state --out reports/2026-11-22",
    )
)
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
        Path | None,
        typer.Option(
            help="Folder for report.html, .json, .md, .sarif, junit.xml, and violations.parquet with all."
        ),
    ] = None,
    check: Annotated[list[str] | None, typer.Option(help="Only this invariant, e.g. DELIV-1.")] = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    json: Annotated[Path | None, typer.Option(help="Write the result as JSON to this file.")] = None,
    skew_ms: _Skew = None,
    flush: _Flush = None,
    broadcast: _Broadcast = None,
    orderly: _Orderly = None,
    delays: _Delays = None,
    rebalance_s: _Rebalance = _REBALANCE_S,
    broker_config: _BrokerConfig = None,
    index_slots: _IndexSlots = None,
    carry: Annotated[
        Path | None, typer.Option(help="Folder of what nights hand on: these events follow those before.")
    ] = None,
    late_s: Annotated[
        int, typer.Option(min=0, help="With --carry: what belongs together is no further apart.")
    ] = 3600,
    forget_days: _ForgetDays = _FORGET_DAYS,
    conf: _Conf = None,
) -> None:
    """Judge event logs, store directories and message traces; docs/audit-checks.md says by what.

    A store should not change meanwhile: audit one of a broker that is shut down, or a copy.

    With --carry each run is a night: it tells what no earlier one told, and hands on what is unresolved.

    Exit code: 0 all held, 1 a violation, 2 bad input, 3 inconclusive, 4 Spark or Java is missing or failed.
    """
    from mqproof.spark_audit.checks import CHECKS, EVENT_CHECKS, STORE_CHECKS
    from mqproof.spark_audit.sources.traces import TRACED

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
    _try_folder("--out", out)
    _try_folder("--carry", carry)
    _try_file("--json", json)
    config = _config(broker_config)
    allowed = _allowed(skew_ms, flush, broadcast, orderly, delays, rebalance_s, config)
    settings = _settings(conf or [])

    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.sources.inputs import InputError, Inputs, find_files
    from mqproof.spark_audit.sources.store_tables import name_stores
    from mqproof.spark_audit.sources.stores import SLOTS
    from mqproof.spark_audit.sources.traces import find_traces

    try:
        # Before Spark starts, which takes seconds: a wrong path is told at once.
        found = find_files(inputs) if inputs else Inputs(())
        stores = name_stores(directories)
        traces = find_traces(trace or [])
        sizes = {file: file.stat().st_size for file in found.files}
    except InputError as error:
        _fail(str(error))
    again = [part for path in inputs for part in ("--events", path)]
    again += [part for text in directories for part in ("--store", text)]
    again += [part for text in trace or [] for part in ("--trace", text)]
    again += _said(
        {
            "--skew-ms": skew_ms,
            "--flush": flush,
            "--broadcast": broadcast,
            "--orderly": orderly,
            "--delays": delays,
            "--rebalance-s": rebalance_s if rebalance_s != _REBALANCE_S else None,
            "--broker-config": broker_config,
            "--index-slots": index_slots,
        }
    )
    request = _Request(
        found,
        stores,
        index_slots or config.index_slots or SLOTS,
        wanted,
        allowed,
        shlex.join(again),
        carry,
        late_s * 1_000_000,
        forget_days * _DAY_US,
        traces,
    )
    options = SessionOptions(
        master=master,
        memory=memory,
        input_bytes=sum(sizes.values()),
        text_bytes=sum(size for file, size in sizes.items() if file.suffix != ".parquet"),
        conf=settings,
    )
    try:
        with _session(options) as (spark, scratch):
            code = _audit(spark, scratch, request, out, json)
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or out or json}: {error.strerror}")
    raise typer.Exit(code)


def _try_folder(option: str, folder: Path | None) -> None:
    """Tells before the work, which may take hours, what could not be written after it."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        _fail(f"{option}: {folder} is a file, expected a folder")
    _try_place(option, folder)


def _try_file(option: str, file: Path | None) -> None:
    """As `_try_folder`. What is no regular file (a pipe, /dev/stdout) is written to as it is."""
    if file is None:
        return
    if file.is_dir():
        _fail(f"{option}: {file} is a folder, expected a file")
    if file.is_file() or not file.exists():
        _try_place(option, file)


def _try_place(option: str, place: Path) -> None:
    from mqproof.report.beside import try_place

    try:
        try_place(place)
    except OSError as error:
        _fail(f"{option}: {place} cannot be written: {error.strerror}")


@contextmanager
def _session(options: "SessionOptions") -> "Iterator[tuple[SparkSession, Path]]":
    """Spark, and a folder for what is temporary; both are gone at the end, but for a session that was there
    before (a notebook's, a test's)."""
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.runtime.scratch import scratch
    from mqproof.spark_audit.runtime.session import open_session
    from mqproof.spec.spark import MasterError, SessionError

    if not re.fullmatch(r"[1-9]\d*[kmgt]", options.memory, re.IGNORECASE):
        _fail(f"--memory: {options.memory!r}, expected a number and a unit, e.g. 2g")
    borrowed = SparkSession.getActiveSession() is not None
    logging.getLogger().addFilter(_is_news)
    with ExitStack() as opened:
        if not borrowed:
            opened.enter_context(terminable())
        try:
            folder = opened.enter_context(scratch(options.temporary))
        except OSError as error:
            _fail(f"{options.temporary}: {error.strerror}, where temporary files were to be; {_ELSEWHERE}")
        try:
            spark = open_session(options if borrowed else options.spilling_in(folder))
        except MasterError as error:
            _fail(f"--master: {error}")
        except SessionError as error:
            _fail(str(error), Exit.TOOL)
        if not borrowed:
            opened.enter_context(_stopping(spark))
            opened.enter_context(_ending_jobs(spark))
        with _blamed(folder):
            yield spark, folder


@contextmanager
def _stopping(spark: "SparkSession") -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # the wheel ships no types

    try:
        yield
    finally:
        # Its JVM may be gone: a signal to all processes of a service ends it, too.
        with suppress(Py4JError, ConnectionError):
            spark.stop()


@contextmanager
def _ending_jobs(spark: "SparkSession") -> Iterator[None]:
    """A signal ends Spark's jobs, those too that other threads begin yet: else they would be waited for."""

    def cancel() -> None:
        with suppress(Exception):  # Spark is stopped
            while True:
                spark.sparkContext.cancelAllJobs()
                time.sleep(_CANCEL_EVERY_S)

    def told_to_end(number: int, frame: FrameType | None) -> None:
        # By another thread: this one may be talking to Spark.
        Thread(target=cancel, daemon=True).start()
        ends[number](number, frame)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    terminate = before[signal.SIGTERM]
    assert callable(terminate), "terminable's"
    ends = {int(signal.SIGINT): signal.default_int_handler, int(signal.SIGTERM): terminate}
    for number in ends:
        signal.signal(number, told_to_end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_CANCEL_EVERY_S: Final = 0.2


@contextmanager
def _blamed(scratch: Path) -> Iterator[None]:
    """What Spark throws ends the command with one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        _fail(*_blame(error, scratch))
    except OSError as error:
        if error.errno == errno.ENOSPC and str(error.filename).startswith(str(scratch)):
            _fail(_full_of_temporary(scratch), Exit.TOOL)
        raise


def _is_news(record: logging.LogRecord) -> bool:
    """Of a call that a signal interrupts Spark's bridge logs the stack, and that of the call that ends it."""
    told = str(record.msg)
    return "KeyboardInterrupt" not in told and not told.startswith("Exception while sending command")


def _settings(given: list[str]) -> dict[str, str]:
    settings = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not (separator and key.startswith("spark.")):
            _fail(f"--conf: {text!r}, expected KEY=VALUE of Spark, e.g. spark.local.dir=/big")
        settings[key] = value
    return settings


@dataclass(frozen=True, slots=True)
class _Request:
    found: "Inputs"
    stores: dict[str, Path]
    index_slots: int
    wanted: list[str]
    allowed: dict[str, Any]
    """What the user says of clocks, brokers and groups, for Options."""
    again: str
    """The options that name the input and say what it is, for the command that replays a finding."""
    carry: Path | None = None
    late_us: int = 0
    forget_us: int = 0
    traces: tuple[list[Path], list[Path]] = ([], [])
    """Stores and text files, as find_traces gives them."""

    def checks(self) -> "dict[str, Check]":
        """Those whose input is there; what only traces show is none's."""
        from mqproof.spark_audit.checks import CHECKS, EVENT_CHECKS, STORE_CHECKS

        given = {*(EVENT_CHECKS if self.found.files else ()), *(STORE_CHECKS if self.stores else ())}
        return {name: check for name, check in CHECKS.items() if name in self.wanted and name in given}


def _audit(
    spark: "SparkSession", scratch: Path, request: _Request, out: Path | None, json: Path | None
) -> int:
    from mqproof.report import terminal
    from mqproof.spark_audit.incremental.state_folder import next_state, open_run

    spans_us = (request.late_us, request.forget_us)
    night = open_run(spark, request.carry, *spans_us) if request.carry else None
    # The old state stays until everything is written: an interrupted night is run again.
    with next_state(night) if night else nullcontext() as following:
        with stages("audit") as told:
            done, report, aside = _judge(spark, scratch, request, night, following, told)
        # Not beside a moving line, which would take it for its own.
        terminal.show(report)
        _write(report, done, aside, out, json)
    return exit_code(report.results)


def _judge(
    spark: "SparkSession",
    scratch: Path,
    request: _Request,
    night: "IncrementalRun | None",
    following: Path | None,
    stage: Callable[[str], None],
) -> tuple["Audit", Report, "DataFrame"]:
    """The audit, its report, and the file and line of each row that is no event and no trace."""
    from mqproof.spark_audit.audit import audit
    from mqproof.spark_audit.evidence.history import ALONE
    from mqproof.spark_audit.evidence.options import Options
    from mqproof.spark_audit.incremental.continuation import Continuation
    from mqproof.spark_audit.incremental.so_far import with_history
    from mqproof.spark_audit.reporting.summary import summarise
    from mqproof.spark_audit.reporting.timelines import with_timelines
    from mqproof.spark_audit.sources.read import read_files
    from mqproof.spark_audit.sources.store_tables import read_stores

    started = time.monotonic()
    for line in request.found.said_of_repeats():
        _say(line)
    stage(f"reading {counted(len(request.found.files), 'file')} and {counted(len(request.stores), 'store')}")
    log = read_files(spark, request.found, scratch)
    stored = read_stores(spark, request.stores, scratch, request.index_slots) if request.stores else None
    before = f" --carry {shlex.quote(str(night.before))}" if night and night.before else ""
    done = audit(
        log.told,
        scratch,
        options=Options(**request.allowed),
        store=stored,
        checks=request.checks(),
        given_rows=log.rows,
        replay=f"mqproof audit run {request.again}{before}",
        progress=stage,
        history=Continuation(night, following) if night else ALONE,
    )
    stage("timelines of what was found")
    # Of a night's message, the first half may stand in what was carried.
    events = log.events.unionByName(night.carried.rows) if night and night.carried else log.events
    told = with_timelines(spark, done.results, events, done.overview.brokers, stored)
    done = replace(done, results=told)
    aside = log.corrupt
    if any(request.traces):
        stage("reading message traces")
        done, unreadable = _with_traces(spark, done, request)
        aside = aside.unionByName(unreadable)
    stage("summing up")
    corrupt_rows = done.unreadable_rows
    corrupt = [(row["file"], row["line"]) for row in log.corrupt.limit(10).collect()] if corrupt_rows else []
    report = summarise(done, log, request.stores, time.monotonic() - started, corrupt, corrupt_rows)
    return done, with_history(report, done, night, following) if night else report, aside


def _with_traces(spark: "SparkSession", done: "Audit", request: _Request) -> tuple["Audit", "DataFrame"]:
    """The audit with what traces show, judged by them where nothing better was given; and the file and line
    of the records that cannot be read."""
    from mqproof.spark_audit.sources.traces import judge_traces, read_traces

    traces = read_traces(spark, *request.traces)
    judged = [result.id for result in done.results if result.verdict is not Verdict.NOT_TESTED]
    shown = judge_traces(traces, done.skew_us, judged=judged)
    unreadable = traces.unreadable.count()
    kept = tuple(result for result in shown if result.id in request.wanted)
    return replace(done, results=done.results + kept, unreadable_traces=unreadable), traces.unreadable


def _said(options: Mapping[str, Any]) -> list[str]:
    """The options that were given, as on the command line."""
    given = {name: value if isinstance(value, list) else [value] for name, value in options.items()}
    return [
        part
        for name, values in given.items()
        for value in values
        if value is not None
        for part in (name, str(value))
    ]


def _config(file: Path | None) -> "BrokerConfig":
    from mqproof.spark_audit.sources.broker_config import BrokerConfig, read_config
    from mqproof.spark_audit.sources.inputs import InputError

    try:
        return read_config(file) if file else BrokerConfig()
    except InputError as error:
        _fail(str(error))


def _allowed(
    skew_ms: int | None,
    flush: str | None,
    broadcast: list[str] | None,
    orderly: list[str] | None,
    delays: str | None,
    rebalance_s: int,
    config: "BrokerConfig",
) -> dict[str, Any]:
    """For Options; what an option says comes before what a broker's configuration says."""
    from mqproof.spark_audit.sources.broker_config import FLUSH_MODES, parse_delays
    from mqproof.spark_audit.sources.inputs import InputError

    if flush not in (None, *FLUSH_MODES):
        _fail(f"--flush: {flush!r}, expected {' or '.join(FLUSH_MODES)}")
    try:
        ladder = parse_delays(delays, "--delays") if delays is not None else config.delays_ms
    except InputError as error:
        _fail(str(error))
    return {
        "flush": flush or config.flush,
        "broadcast": tuple(broadcast or ()),
        "orderly": tuple(orderly or ()),
        "rebalance_us": rebalance_s * 1_000_000,
        **({} if ladder is None else {"delays_ms": ladder}),
        **({} if skew_ms is None else {"skew_us": skew_ms * 1000, "is_skew_given": True}),
    }


def _write(report: Report, done: "Audit", aside: "DataFrame", out: Path | None, json: Path | None) -> None:
    """The files that were asked for. Raises OSError; what stood there is unchanged, then."""
    from mqproof.report import json_file
    from mqproof.report.write import write_report, write_text
    from mqproof.spark_audit.audit import write_violations
    from mqproof.spark_audit.runtime.staging import staged

    if out is not None:
        with stages("audit") as stage, staged(out, replaces=("unreadable",)) as folder:
            stage(f"writing {out}")
            for name in _FORMS:
                write_report(report, folder / name)
            rows = write_violations(done, folder / "violations.parquet")
            if done.unreadable_rows or done.unreadable_traces:
                aside.coalesce(1).write.json(str(folder / "unreadable"))
        _say(f"wrote {out / _FORMS[0]}, {', '.join(_FORMS[1:])} and violations.parquet with {rows} rows")
    if json is not None:
        write_text(json, json_file.render(report))
        _say(f"wrote {json}")


_FORMS: Final = ("report.html", "report.json", "report.md", "report.sarif", "junit.xml")


@audit_app.command(
    name="explain",
    epilog=_examples(
        "explain 7F0000012A9C00000000000000000100 --events build/log --store broker-a=/var/rocketmq/store"
    ),
)
def explain_message(
    msg_id: Annotated[
        str, typer.Argument(help="The producer's unique key; of what a --store has, the broker's id will do.")
    ],
    events: Annotated[
        list[str] | None, typer.Option(help="Event log, folder or pattern, as for audit run.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Store directory of a broker, DIR or BROKER=DIR.")
    ] = None,
    trace: _Trace = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    index_slots: _IndexSlots = None,
    conf: _Conf = None,
) -> None:
    """Print the whole life of one message: what every input says of it, in order of time.

    Exit code: 0 some input knows it, 2 bad input, 3 none does, 4 Spark or Java is missing or failed.
    """
    if not (events or store or trace):
        _fail("--events: name at least one event log, folder or pattern, or a --store")

    settings = _settings(conf or [])

    from mqproof.spark_audit.passes.profile import overview, profile
    from mqproof.spark_audit.reporting.explain import at_brokers_id, lives
    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.sources.inputs import InputError, Inputs, find_files
    from mqproof.spark_audit.sources.read import read_files
    from mqproof.spark_audit.sources.store_tables import name_stores, read_stores
    from mqproof.spark_audit.sources.stores import SLOTS
    from mqproof.spark_audit.sources.traces import find_traces, read_traces

    try:
        found = find_files(events) if events else Inputs(())
        stores = name_stores(store or [])
        traces = find_traces(trace or [])
        with _session(SessionOptions(master=master, memory=memory, conf=settings)) as (spark, scratch):
            given = {"file": found.files, "store": stores, "trace input": [*traces[0], *traces[1]]}
            _say("reading " + ", ".join(counted(len(each), what) for what, each in given.items() if each))
            told = read_files(spark, found, scratch).told
            stored = read_stores(spark, stores, scratch, index_slots or SLOTS) if stores else None
            traced = read_traces(spark, *traces).told if any(traces) else None
            brokers = overview(profile(told)).brokers
            lived = lives(spark, [msg_id], told.rows, brokers, stored, traced)
            if not lived and stored and (named := at_brokers_id(msg_id, stored)):
                _say(f"what a broker calls {msg_id} is {', '.join(named)}")
                lived = lives(spark, named, told.rows, brokers, stored, traced)
    except InputError as error:
        _fail(str(error))
    if not lived:
        _fail(f"{msg_id}: no input knows this message", Exit.INCONCLUSIVE)
    for steps in lived.values():
        for step in steps:
            typer.echo(one_line(step.line()))


@audit_app.command(
    name="watch",
    epilog=_examples(
        "watch --state state --events incoming --late-s 600",
        "watch --state state --topic EVENT_LOGS --namesrv 127.0.0.1:9876",
    ),
)
def watch_logs(
    state: Annotated[Path, typer.Option(help="Folder of what is carried from batch to batch.")],
    events: Annotated[
        list[Path] | None, typer.Option(help="Folder into which event logs are moved, each whole.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Topic whose messages are lines of NDJSON event logs.")
    ] = None,
    namesrv: Annotated[str, typer.Option(help="HOST:PORT of name servers, with --topic.")] = "",
    every_s: Annotated[float, typer.Option(min=0, help="Seconds from batch to batch.")] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Judge what is there, and end.")] = False,
    batch_mib: Annotated[
        int, typer.Option(min=1, help="A batch takes so much of new files, but at least one.")
    ] = 256,
    batch_messages: Annotated[
        int, typer.Option(min=1, help="A batch takes about so many messages of topics.")
    ] = 100_000,
    late_s: Annotated[
        int, typer.Option(min=0, help="What belongs together is no further apart; then it is told.")
    ] = 3600,
    forget_days: _ForgetDays = _FORGET_DAYS,
    skew_ms: _Skew = None,
    flush: _Flush = None,
    broadcast: _Broadcast = None,
    orderly: _Orderly = None,
    delays: _Delays = None,
    rebalance_s: _Rebalance = _REBALANCE_S,
    broker_config: _BrokerConfig = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    conf: _Conf = None,
) -> None:
    """Judge event logs as they come; print each violation as it becomes certain; end on Ctrl-C or SIGTERM.

    The verdicts are those of `audit run` over the same logs; --state is also what `audit run --carry` reads.

    Exit code, at the end: 0 no violation so far, 1 some, 2 bad input, 3 no event seen, or rows are missing or
    unreadable that may explain all of them, 4 Spark failed.
    """
    if not (events or topic):
        _fail("--events: name at least one folder, or a --topic")
    if topic and not namesrv:
        _fail("--topic: --namesrv is missing, expected HOST:PORT of a name server")
    allowed = _allowed(skew_ms, flush, broadcast, orderly, delays, rebalance_s, _config(broker_config))
    settings = _settings(conf or [])

    from mqproof.spark_audit.evidence.options import Options
    from mqproof.spark_audit.incremental.so_far import events_so_far, rows_missing, violations_so_far
    from mqproof.spark_audit.incremental.state_folder import UNREADABLE, newest
    from mqproof.spark_audit.incremental.watch import Source, Watch, watch
    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.sources.inputs import InputError

    given = {"namesrv": namesrv, "topics": ",".join(topic)} if topic else None
    wish = Watch(
        Source(tuple(events or ()), given),
        state,
        late_s * 1_000_000,
        Options(**allowed),
        every_s,
        once,
        forget_us=forget_days * _DAY_US,
        batch_bytes=batch_mib << 20,
        batch_messages=batch_messages,
    )
    try:
        with (
            _session(SessionOptions(master=master, memory=memory, conf=settings)) as (spark, scratch),
            suppress(KeyboardInterrupt),  # told to end, which is no failure
            _blamed(scratch),
        ):
            watch(spark, wish, scratch, _tell, _say)
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or state}: {error.strerror}")
    last = newest(state)
    if last is None or not events_so_far(last):
        unreadable = rows_missing(last) if last else 0
        rows = "1 unreadable row is" if unreadable == 1 else f"{unreadable} unreadable rows are"
        aside = f"; {rows} in {state / UNREADABLE}" if unreadable else ""
        _fail(f"no event was seen{aside}", Exit.INCONCLUSIVE)
    raise typer.Exit(_so_far(violations_so_far(last), rows_missing(last)))


def _so_far(rows: Sequence[tuple[str, str, int, int, int]], missing: int) -> int:
    """Prints what nights.violations_so_far tells, in the light of so many rows that are missing or
    unreadable, as audit.judge sees them. Returns the exit code."""
    totals: Counter[str] = Counter()
    for invariant, _, count, *_ in rows:
        totals[invariant] += count
    holes = f"{missing} rows are missing or unreadable"
    for invariant, rule, count, _, young in rows:
        open_ = f", {young} of them younger than --late-s and not told yet" if young else ""
        doubt = f"; unknown: {holes}, and may explain them" if totals[invariant] <= missing else ""
        typer.echo(f"{invariant} {rule}: {counted(count, 'violation')}{open_}{doubt}")
    if not rows:
        typer.echo("no violation so far" + (f"; unknown: {holes}" if missing else ""))
    if any(total > missing for total in totals.values()):
        return Exit.VIOLATED
    return Exit.INCONCLUSIVE if missing else Exit.HELD


def _tell(violation: "Mapping[str, Any]") -> None:
    """One line: when, invariant and rule in their places, then NAME=VALUE of what is known, evidence last."""
    from mqproof.spark_audit.reporting.explain import utc

    at = "-" if violation["first_ts"] is None else utc(violation["first_ts"])
    # Quoted, so that no name in a log passes for a field of its own.
    named = [f"{name}={shlex.quote(f'{violation[name]}')}" for name in _PLACE if violation[name] is not None]
    evidence = () if violation["evidence"] is None else (f"evidence={violation['evidence']}",)
    line = "  ".join([at, violation["invariant"], violation["rule"], *named, *evidence])
    typer.echo(one_line(line))


_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset", "msg_id", "group")


@audit_app.command(
    epilog=_examples(
        "generate --events 100000 --out build/log --anomaly lost=3 --anomaly duplicate=5",
        "generate --events 100000000 --out build/large --seed 7 --format ndjson",
    )
)
def generate(
    events: Annotated[int, typer.Option(help="About so many events.")],
    out: Annotated[Path, typer.Option(help="Folder to fill; must be empty.")],
    anomaly: Annotated[
        list[str] | None, typer.Option(help="NAME=COUNT, of the names above; once for each.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same log.")] = 1,
    file_format: Annotated[str, typer.Option("--format", help="parquet or ndjson")] = "parquet",
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver.")] = "2g",
    conf: _Conf = None,
) -> None:
    """Make an event log with planted anomalies; _truth.parquet lists the violations that an audit must find.

    Spark writes it, in parts, of any size; the same seed gives the same log on any number of cores.

    Anomalies: lost, duplicate, double_append, phantom, reordered, skipped, overlap, offset_regression,
    flush_lost.

    Exit code: 0 written, 2 bad input, 4 Spark or Java is missing or failed.
    """
    if file_format not in ("parquet", "ndjson"):
        _fail(f"--format: {file_format!r}, expected parquet or ndjson")

    settings = _settings(conf or [])

    from mqproof.spark_audit.generator.generate import Wish, prepare
    from mqproof.spark_audit.generator.generate import generate as write_log
    from mqproof.spark_audit.generator.scenario import ScenarioError
    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.runtime.staging import staged

    wish = Wish(events, _anomalies(anomaly or []), seed, file_format)
    _try_folder("--out", out)
    try:
        # Before Spark starts, which takes seconds: a wrong wish is told at once.
        prepare(wish, out)
        with (
            _session(SessionOptions(master=master, memory=memory, conf=settings)) as (spark, _),
            stages("audit") as stage,
            staged(out) as folder,
        ):
            done = write_log(spark, wish, folder, progress=stage)
    except (ScenarioError, FileExistsError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or out}: {error.strerror}")
    typer.echo(
        f"{out}: {done.events} events of {done.messages} messages in {counted(len(done.files), 'file')}, "
        f"{counted(done.expected, 'violation')} to find (seed {seed})"
    )


def _anomalies(wishes: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for wish in wishes:
        name, _, count = wish.partition("=")
        if not count.isdecimal():
            _fail(f"--anomaly: {wish!r}, expected NAME=COUNT, e.g. lost=3")
        counts[name] = counts.get(name, 0) + int(count)
    return counts


_DISK_FULL: Final = "No space left on device"


def _blame(error: Exception, scratch: Path) -> tuple[str, int]:
    """One line and an exit code for what Spark threw.

    Raises:
        KeyboardInterrupt: somebody ended it, and Spark told of the job that it cancelled therefore.
    """
    from py4j.protocol import Py4JNetworkError

    behind: BaseException | None = error
    while behind := behind and behind.__context__:
        if isinstance(behind, KeyboardInterrupt):
            raise behind
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return "Spark's JVM is gone: somebody killed it, or it had no memory left (--memory)", Exit.TOOL
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if damaged := re.search(r"FAILED_READ_FILE.*?reading file (?:file:/*)?(/?\S+)\.\s", line):
            return f"/{damaged[1].lstrip('/')}: damaged, cannot be read to its end", Exit.USAGE
        if _DISK_FULL in line:
            return _full(str(error), scratch), Exit.TOOL
        if unreadable := re.search(r"SplitError: (\S.*)", line):
            return unreadable[1], Exit.USAGE
    # The innermost cause says most; above it there is only where Spark was at the time.
    causes = (
        [line for line in lines if line.startswith(("Caused by:", ": "))] or lines or [type(error).__name__]
    )
    return f"Spark failed: {causes[-1].removeprefix('Caused by:').removeprefix(':').strip()[:300]}", Exit.TOOL


def _full(told: str, scratch: Path) -> str:
    """Which disk is full: that of an output, or that of what is sorted and spilled meanwhile."""
    written = re.search(rf"\[Errno \d+\] {_DISK_FULL}: '([^']+)'", told)  # by Python
    if not any(name in told for name in _OF_SPILLS):
        by_spark = re.search(r"TASK_WRITE_FAILED\] Task failed while writing rows to file:/*(/\S+)\.\s", told)
        written = written or by_spark
    if not written or written[1].startswith(str(scratch)):
        return _full_of_temporary(scratch)
    # What is in the making is called so by nobody else (report/beside.py).
    place = re.sub(r"/[.]([^/]+)[.]tmp(/.*)?$", r"/\1", written[1])
    return f"{place}: {_DISK_FULL}"


def _full_of_temporary(scratch: Path) -> str:
    return f"{scratch.parent}: {_DISK_FULL}, where temporary files are: free some; {_ELSEWHERE}"


_ELSEWHERE: Final = "TMPDIR=DIR or --conf spark.local.dir=DIR names another folder"

_OF_SPILLS: Final = ("DiskBlockObjectWriter", "SpillWriter", "TimeTrackingOutputStream", "storage.DiskStore")
"""Who writes what is sorted and spilled, in the stack of an error."""


def _say(line: str) -> None:
    # Not through click, which does not know the stream that keeps lines apart from a moving one.
    print(f"audit: {one_line(line)}", file=sys.stderr)


def _fail(message: str, code: int = Exit.USAGE) -> NoReturn:
    print(f"mqproof audit: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(code)


__all__ = ["app"]
