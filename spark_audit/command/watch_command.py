"""`mqproof audit watch`: judge event logs as they arrive."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mqproof.report.model import Exit
from mqproof.report.printable import counted, one_line
from mqproof.spark_audit.command.conversions import Conversions, Mapped, mapping_errors_shown
from mqproof.spark_audit.command.engine_choice import Engine, is_local
from mqproof.spark_audit.command.failures import fail, failures_reported, say
from mqproof.spark_audit.command.opened_session import opened_session
from mqproof.spark_audit.command.option_groups import (
    DAY_US,
    FORGET_DAYS,
    ClusterOptions,
    ForgetDays,
    Metrics,
    SparkOptions,
    examples,
)
from mqproof.spark_audit.command.outputs import try_file

if TYPE_CHECKING:
    from mqproof.spark_audit.incremental.watch import ReportViolation, Watch
    from mqproof.spark_audit.judging.outcome import Audit

EXAMPLES: Final = examples(
    "watch --state state --events incoming --late-s 600",
    "watch --state state --topic EVENT_LOGS --namesrv 127.0.0.1:9876",
)

_NO_SPANS: Final = (
    "--spans: a watch reads no spans, because they have no numbers that show which of them are missing or"
    " come late; judge them as a whole, repeatedly: mqproof audit run --spans DIR"
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The watched inputs, and the size of a batch."""

    events: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Folder into which complete event logs are moved."),
    ] = None
    topic: Annotated[
        list[str] | None, typer.Option(help="Topic whose messages are lines of NDJSON event logs.")
    ] = None
    namesrv: Annotated[str, typer.Option(help="HOST:PORT of name servers, with --topic.")] = ""
    every_s: Annotated[float, typer.Option(min=0, help="Seconds between batches.")] = 60.0
    once: Annotated[bool, typer.Option("--once", help="Judge the existing input, and end.")] = False
    batch_mib: Annotated[
        int, typer.Option(min=1, help="Maximum MiB of new files in a batch; at least one file.")
    ] = 256
    batch_messages: Annotated[
        int, typer.Option(min=1, help="Approximate maximum of topic messages in a batch.")
    ] = 100_000

    def check(self, *, has_mapping: bool = False) -> None:
        if not (self.events or self.topic or has_mapping):
            fail("--events: name at least one folder, or a --topic")
        if self.topic and not self.namesrv:
            fail("--topic: --namesrv is missing, expected HOST:PORT of a name server")


@dataclass(frozen=True, slots=True)
class WatchEngine:
    """Which engine judges the batches."""

    engine: Annotated[
        Engine,
        typer.Option(
            help="local: DuckDB in this process, without Java; spark; auto: local, unless an option or the"
            " state needs Spark."
        ),
    ] = Engine.AUTO

    def is_local(self, state: Path, spark: SparkOptions) -> bool:
        from mqproof.spark_audit.incremental.watched_sources import SPARK, engine_of

        if self.engine is Engine.AUTO and engine_of(state) == SPARK:
            return False
        return is_local(self.engine, spark.given(), ())


def watch_logs(
    *,
    state: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the state carried between batches.")],
    source: SourceOptions,
    late_s: Annotated[
        int, typer.Option(min=0, help="Maximum time between related events; then a violation is reported.")
    ] = 3600,
    forget_days: ForgetDays = FORGET_DAYS,
    mapping: Mapped = None,
    spans: Annotated[list[Path] | None, typer.Option(hidden=True, metavar="FILE")] = None,
    metrics: Metrics = None,
    webhook: Annotated[
        str, typer.Option(metavar="URL", help="Send violations there, in Alertmanager's format (API v2).")
    ] = "",
    cluster: ClusterOptions,
    engine: WatchEngine,
    spark_options: SparkOptions,
) -> None:
    """Judge event logs as they arrive; print violations when they are certain; end on Ctrl-C or SIGTERM.

    The verdicts are those of `audit run` over the same logs; `audit run --state` reads the same folder.

    Without an option that needs Spark, DuckDB judges the batches in this process, without Java.

    Exit codes: 0 no violation so far; 1 a violation; 2 bad input; 3 no event was read, or missing rows may
    explain all violations; 4 the engine is missing or failed.
    """
    if spans:
        fail(_NO_SPANS)
    source.check(has_mapping=bool(mapping))
    try_file("--metrics", metrics)
    outlets = Outlets(metrics, webhook)
    outlets.check()
    allowed = cluster.allowed(cluster.config())
    spark_options.settings()  # fails before the inputs are read

    from mqproof.spark_audit.sources.inputs import InputError

    request = _request(source, state, late_s, forget_days, allowed)
    try:
        is_local = engine.is_local(state, spark_options)
        request = outlets.joined(with_mappings(request, mapping or []))
        # A signal ends the watch; that is not a failure.
        with suppress(KeyboardInterrupt), mapping_errors_shown():
            (_watch_locally if is_local else _watch_on_spark)(request, outlets.report, spark_options)
    except InputError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or state}: {error.strerror}")
    raise typer.Exit(_report_totals(state))


def _watch_locally(request: "Watch", report: "ReportViolation", spark_options: SparkOptions) -> None:
    from mqproof.spark_audit.command.opened_database import opened_database
    from mqproof.spark_audit.incremental.local_watch import watch_locally

    with opened_database(spark_options.memory) as (database, scratch):
        watch_locally(database, request, scratch, report, say)


def _watch_on_spark(request: "Watch", report: "ReportViolation", spark_options: SparkOptions) -> None:
    from mqproof.spark_audit.incremental.spark_watch import watch_on_spark

    with opened_session(spark_options.session()) as (spark, scratch), failures_reported(scratch):
        watch_on_spark(spark, request, scratch, report, say)


def with_mappings(request: "Watch", files: list[str]) -> "Watch":
    """Return the request with the tables of mapping files, after the present ones have been converted.

    Raises:
        InputError: a mapping or a table cannot be read by a watch. OSError: a log cannot be written.
    """
    if not files:
        return request
    from mqproof.spark_audit.incremental.mapped_arrivals import MappedArrivals

    with mapping_errors_shown():
        arrivals = MappedArrivals(Conversions.read(files).mappings, request.state)
        arrivals.take(say)

    def poll() -> None:
        arrivals.take(say)

    folders = (*request.source.folders, arrivals.folder)
    return replace(request, source=replace(request.source, folders=folders), poll=poll)


def _request(
    source: SourceOptions, state: Path, late_s: int, forget_days: int, allowed: dict[str, Any]
) -> "Watch":
    from mqproof.spark_audit.evidence.options import Options
    from mqproof.spark_audit.incremental.watch import Source, Watch

    topics = {"namesrv": source.namesrv, "topics": ",".join(source.topic)} if source.topic else None
    return Watch(
        Source(tuple(source.events or ()), topics),
        state,
        late_s * 1_000_000,
        Options(**allowed),
        source.every_s,
        source.once,
        forget_us=forget_days * DAY_US,
        batch_bytes=source.batch_mib << 20,
        batch_messages=source.batch_messages,
    )


class Outlets:
    """Where a watch writes violations and metrics, besides its standard output."""

    PENDING_MAX: Final = 10_000
    """Maximum number of violations that wait for a webhook that cannot be reached."""

    def __init__(self, metrics: Path | None, webhook: str) -> None:
        self._metrics = metrics
        self._webhook = webhook
        self._pending: list[Mapping[str, Any]] = []

    def check(self) -> None:
        from mqproof.spark_audit.reporting.alertmanager import is_address

        if self._webhook and not is_address(self._webhook):
            fail(f"--webhook: {self._webhook}, expected http://HOST:PORT/api/v2/alerts")

    def joined(self, request: "Watch") -> "Watch":
        return replace(request, figures=self._metrics is not None, after_batch=self.after_batch)

    def report(self, violation: Mapping[str, Any]) -> None:
        """Print a violation, and keep it for the webhook."""
        report_violation(violation)
        if self._webhook and len(self._pending) < self.PENDING_MAX:
            self._pending.append(violation)

    def after_batch(self, done: "Audit", state: Path, seconds: float) -> None:
        """Send the violations, and write the metrics. A failure is reported, and does not end the watch."""
        try:
            self._send()
            self._write(done, state, seconds)
        except OSError as error:
            say(f"{error.filename or self._webhook}: {error.strerror or error}")

    def _send(self) -> None:
        if not self._pending:
            return
        from mqproof.spark_audit.reporting.alertmanager import alerts, post

        try:
            post(self._webhook, alerts(self._pending))
        except OSError as error:
            waiting = counted(len(self._pending), "violation")
            say(f"--webhook: {error}; {waiting} will be sent after the next batch")
            return
        self._pending.clear()

    def _write(self, done: "Audit", state: Path, seconds: float) -> None:
        if self._metrics is None:
            return
        from mqproof.spark_audit.incremental.all_runs import rows_missing
        from mqproof.spark_audit.judging.findings import parquet_files
        from mqproof.spark_audit.reporting.audit_metrics import measured, write_metrics

        known = parquet_files(state / "findings")
        write_metrics(self._metrics, measured(done, seconds, known, rows_missing(state)))


def _report_totals(state: Path) -> int:
    """Print the violations so far, from the state of the last batch. Return the exit code."""
    from mqproof.spark_audit.incremental.all_runs import (
        events_so_far,
        gaps_so_far,
        rows_missing,
        violations_so_far,
    )
    from mqproof.spark_audit.incremental.state_folder import UNREADABLE, newest

    last = newest(state)
    if last is None or not events_so_far(last):
        unreadable = rows_missing(last) if last else 0
        rows = "1 unreadable row is" if unreadable == 1 else f"{unreadable} unreadable rows are"
        unreadable_note = f"; {rows} in {state / UNREADABLE}" if unreadable else ""
        fail(f"no event was read{unreadable_note}", Exit.INCONCLUSIVE)
    return so_far(violations_so_far(last), rows_missing(last), gaps_so_far(last))


def so_far(rows: Sequence[tuple[str, str, int, int, int]], missing: int, gaps: int = 0) -> int:
    """Print the violations of all_runs.py, and the number of missing or unreadable rows.

    `gaps` is the number of gaps that nodes report. Return the exit code.

    The verdict follows the rule of judging/verdict.py.
    """
    totals: Counter[str] = Counter()
    for invariant, _, count, *_ in rows:
        totals[invariant] += count
    holes = f"{missing} rows are missing or unreadable"
    for invariant, rule, count, _, open_count in rows:
        open_ = f", {open_count} of them younger than --late-s and not reported yet" if open_count else ""
        caveat = f"; unknown: {holes}, and may explain them" if totals[invariant] <= missing else ""
        typer.echo(f"{invariant} {rule}: {counted(count, 'violation')}{open_}{caveat}")
    if not rows:
        unsure = [holes] if missing else []
        unsure += [f"nodes dropped events ({counted(gaps, 'gap')})"] if gaps else []
        typer.echo("; ".join(["no violation so far", *(f"unknown: {reason}" for reason in unsure)]))
    if any(total > missing for total in totals.values()):
        return Exit.VIOLATED
    return Exit.INCONCLUSIVE if missing or gaps else Exit.HELD


def report_violation(violation: "Mapping[str, Any]") -> None:
    """Print one line: time, invariant, rule, then NAME=VALUE of each known field; the evidence is last."""
    from mqproof.spark_audit.reporting.explain import utc

    at = "-" if violation["first_ts"] is None else utc(violation["first_ts"])
    # Quoted, so that a name in a log cannot look like another field.
    named = [f"{name}={shlex.quote(f'{violation[name]}')}" for name in _PLACE if violation[name] is not None]
    evidence = () if violation["evidence"] is None else (f"evidence={violation['evidence']}",)
    line = "  ".join([at, violation["invariant"], violation["rule"], *named, *evidence])
    typer.echo(one_line(line))


_PLACE: Final = ("broker", "topic", "queue_id", "queue_offset", "msg_id", "group")
