"""Measures the audit on generated logs, and compares it with other tools on the same files in the same run.

A bare Spark scan reads every column that the audit reads and aggregates them by queue. Spark's aggregation by
message id is the minimum work of an audit without fingerprints. DuckDB runs handwritten versions of the same
checks (duckdb.sql), and must find the same violations. Spark's own work runs in a separate JVM with both
compilers, which it needs. An audit of that size runs without the second compiler, since its tasks work
outside the JVM.

Ratios depend less on the machine than events per second do. No measurement includes the start of the JVM.
Spark's own work and the clean audit run once before they are measured, which compiles them and warms the file
cache. Each result is reported as soon as it is available, so an interrupted run still shows the results so
far.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.report.measurements import described
from mqproof.spark_audit.audit import audit, violations
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.generator import scenario
from mqproof.spark_audit.generator.generate import LogRequest
from mqproof.spark_audit.generator.spark_generate import generate
from mqproof.spark_audit.generator.truth import Comparison, compare, read_truth
from mqproof.spark_audit.quality import decode_bench as decode
from mqproof.spark_audit.quality.sizing import Run, plan
from mqproof.spark_audit.runtime.session import SessionOptions, open_session
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import InputError, find_files
from mqproof.spark_audit.sources.read import read
from mqproof.spec.spark import start

_SQL: Final = Path(__file__).with_name("duckdb.sql")
_EVENT_BYTES: Final = 13
"""Approximate size of an event in Parquet; used to size the session before there is a log."""
INJECTED: Final = tuple(name for name in scenario.ANOMALIES if name != "overlap")
"""The anomalies that duckdb.sql also detects."""
_WARM_EVENTS_MAX: Final = 20_000_000
"""Larger logs need no warm-up run."""
_PLANNED_FROM: Final = 5_000_000
"""The cost of a smaller log is mostly the start of each query."""

SCAN: Final = "bare scan"
CLEAN: Final = "clean"
DIRTY: Final = "dirty"
DUCKDB: Final = "duckdb"
DUCKDB_DIRTY: Final = "duckdb, dirty"
BY_MESSAGE: Final = "by message"
LOCAL: Final = "local"
SIDES: Final = (SCAN, BY_MESSAGE, CLEAN, DIRTY, "worst case", LOCAL, DUCKDB, DUCKDB_DIRTY)
_OF_SPARK: Final = (SCAN, BY_MESSAGE)
_OF_DIRTY: Final = (DIRTY, DUCKDB_DIRTY)
_OF_DUCKDB: Final = (LOCAL, DUCKDB, DUCKDB_DIRTY)
LOCAL_EVENTS_MAX: Final = 20_000_000
"""Larger logs are not audited without Spark: they may not fit into memory."""


class SideError(ValueError):
    """A requested side does not exist; the message lists the valid ones."""


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    cpu_seconds: float
    """User and system time of the measured process, including Python workers."""


@dataclass(frozen=True, slots=True)
class Measured:
    events: int
    log_bytes: int
    """Size of the clean log's files."""
    costs: dict[str, Cost]
    """Maps the name of a side to its cost."""
    found: dict[str, list[dict[str, Any]]]
    """Maps the name of a side that judges to the violations that it found."""
    truth: Comparison | None
    """The findings in the dirty log compared with the injected anomalies; None if it was not measured."""
    memory_bytes: int
    """Peak memory of Spark's process."""

    @property
    def clean_findings(self) -> int:
        """The number of violations in the clean log; 0 is expected."""
        return len(self.found.get(CLEAN, ()))

    @property
    def duckdb(self) -> Comparison | None:
        """DuckDB's findings compared with the audit's in the same logs; None if they had no log in common."""
        pairs = [(a, b) for a, b in ((DUCKDB, CLEAN), (DUCKDB_DIRTY, DIRTY)) if {a, b} <= self.found.keys()]
        if not pairs:
            return None
        duckdb_rows, audit_rows = (
            [row for side in log for row in self.found[side]] for log in zip(*pairs, strict=True)
        )
        return compare(duckdb_rows, audit_rows)


Report = Callable[[str, int, Cost, Cost | None], None]
"""Receives a side's name, the number of events, its cost, and the cost of the bare scan."""


def measure(
    events: int,
    injected: int = 125,
    seed: int = 1,
    memory: str = "6g",
    sides: Collection[str] = SIDES,
    report: Report = lambda *_: None,
    log: Path | None = None,
) -> Measured:
    """Generate a clean and a dirty log, and measure the sides. Stops its Spark session.

    An existing `log`, a folder of Parquet files, replaces the clean one; there is then no dirty one.

    Raises:
        ScenarioError: the log is too small for the anomalies.
        SessionError: Spark did not start.
        InputError: the log has nothing to read.
    """
    with tempfile.TemporaryDirectory(prefix="mqproof-bench-") as name:
        scratch = Path(name)
        clean, dirty = log or scratch / "clean", scratch / "dirty"
        input_bytes = _bytes(log) if log else events * _EVENT_BYTES
        spark = open_session(SessionOptions(memory=memory, input_bytes=input_bytes))
        try:
            clock = _Clock(_java_pid(spark), report)
            if not log:
                clock.cost("generate", lambda: generate(spark, LogRequest(events, {}, seed), clean))
            clock.events = sum(pq.read_metadata(file).num_rows for file in _files(clean))
            if any(side in _OF_DIRTY for side in sides):
                generate(spark, LogRequest(events, dict.fromkeys(INJECTED, injected), seed), dirty)
            found: dict[str, list[dict[str, Any]]] = {}
            is_warmed = clock.events <= _WARM_EVENTS_MAX
            if of_spark := [side for side in _OF_SPARK if side in sides]:
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    costs = pool.submit(
                        _of_spark, clean, scratch, of_spark, memory, is_warmed=is_warmed
                    ).result()
                for side, cost in costs.items():
                    clock.take(side, cost)
            for side, work in _work(spark, clean, dirty, scratch).items():
                if side not in sides or (side == LOCAL and clock.events > LOCAL_EVENTS_MAX):
                    continue
                if side == CLEAN and is_warmed:
                    work()
                violated = clock.cost(side, work, in_process=side in _OF_DUCKDB)
                if violated is not None:
                    found[side] = violated
            return Measured(
                clock.events,
                _bytes(clean),
                clock.costs,
                found,
                compare(found[DIRTY], read_truth(dirty)) if DIRTY in found else None,
                _memory_bytes(clock.java),
            )
        finally:
            spark.stop()


def _files(log: Path) -> tuple[Path, ...]:
    files = find_files([str(log)]).files
    if others := [file for file in files if file.suffix != ".parquet"]:
        raise InputError(f"{others[0]}: expected a Parquet file")
    return files


def _bytes(log: Path) -> int:
    return sum(file.stat().st_size for file in _files(log))


def _work(spark: SparkSession, clean: Path, dirty: Path, scratch: Path) -> dict[str, Callable[[], Any]]:
    """Return the work of each side, given the files of the logs."""

    def audited(log: Path, *, exact: bool | None = None) -> list[dict[str, Any]]:
        event_log = read(spark, [str(log)], scratch).event_log
        return violations(audit(event_log, scratch, options=Options(exact=exact), pictures=False))

    return {
        CLEAN: lambda: audited(clean),
        DIRTY: lambda: audited(dirty),
        "worst case": lambda: audited(clean, exact=True),
        LOCAL: lambda: _local(clean, scratch),
        DUCKDB: lambda: _duckdb(clean, scratch),
        DUCKDB_DIRTY: lambda: _duckdb(dirty, scratch),
    }


def _of_spark(
    log: Path, scratch: Path, sides: Collection[str], memory: str, *, is_warmed: bool
) -> dict[str, Cost]:
    """Measure Spark's own work, in a process that has not started a JVM yet."""
    settings = {"spark.driver.memory": memory, "spark.sql.session.timeZone": "UTC"}
    spark = start("mqproof bench", "local[2]", settings, is_short=False)
    try:
        clock = _Clock(_java_pid(spark), lambda *_: None)
        for side in sides:
            work = {SCAN: _scan, BY_MESSAGE: _by_message}[side]
            rows = read(spark, [str(log)], scratch).events
            if is_warmed:
                work(rows)
            clock.cost(side, partial(work, rows))
        return clock.costs
    finally:
        spark.stop()


@dataclass(slots=True)
class _Clock:
    """Measures one side after another."""

    java: int
    """Process id of Spark's JVM."""
    report: Report
    events: int = 0
    costs: dict[str, Cost] = field(default_factory=dict)

    def cost(self, name: str, work: Callable[[], Any], *, in_process: bool = False) -> Any:
        """Measure `work` and return its result.

        The CPU time is that of the JVM with its workers, or, with `in_process`, of this process.
        """
        pid, workers = (os.getpid(), False) if in_process else (self.java, True)
        began = time.monotonic()
        with _Processor(pid, workers=workers) as processor:
            result = work()
            seconds = time.monotonic() - began
        self.take(name, Cost(seconds, processor.seconds))
        return result

    def take(self, name: str, cost: Cost) -> None:
        """Record a cost that was measured elsewhere."""
        self.costs[name] = cost
        self.report(name, self.events, cost, self.costs.get(SCAN))


def _scan(rows: DataFrame) -> None:
    rows.groupBy("kind", "topic", "queue_id", f.col("attrs")["broker"]).agg(
        f.count(f.lit(1)),
        *[f.max(name) for name in ("ts", "seq", "queue_offset", "commit_offset", "attempt")],
        f.bit_xor(f.xxhash64("msg_id", "node", "group", "client", "status")),
    ).collect()


def _by_message(rows: DataFrame) -> None:
    counted = rows.where("msg_id IS NOT NULL").groupBy("msg_id").agg(f.count(f.lit(1)).alias("rows"))
    counted.agg(f.max("rows")).collect()


def _local(log: Path, scratch: Path) -> list[dict[str, Any]]:
    """Return the violations that the audit without Spark finds."""
    with active.embedded(), closing(Database(scratch)) as database:
        event_log = read_embedded(database, find_files([str(log)]), scratch)
        return violations(audit(event_log, scratch, pictures=False))


def _duckdb(log: Path, scratch: Path) -> list[dict[str, Any]]:
    """Return the violations that DuckDB finds."""
    import duckdb

    with duckdb.connect(config={"threads": 2, "memory_limit": "6GB"}) as connection:
        connection.execute("SET temp_directory = ?", [str(scratch / "duckdb")])
        files = quoted(*map(str, _files(log)))
        connection.execute(f"CREATE VIEW log AS FROM read_parquet([{files}], union_by_name = true)")
        try:
            found = connection.execute(_SQL.read_text(encoding="utf-8"))
        except duckdb.BinderException as error:
            raise InputError(f"{log}: DuckDB needs every column of the schema: {error}") from None
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _java_pid(spark: SparkSession) -> int:
    # By then, the launcher's shell has been replaced by Java.
    return int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


class _Processor:
    """User and system time of a process and its children, from Linux's /proc; 0 elsewhere.

    It samples a few times a second, because the final time of an ended process is not always available.
    """

    def __init__(self, pid: int, *, workers: bool) -> None:
        self._pid, self._workers = pid, workers
        self._ticks: dict[tuple[int, str], int] = {}
        self._is_done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Processor":
        self._measure()
        self._before = sum(self._ticks.values())
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._watcher.join()
        self._measure()

    @property
    def seconds(self) -> float:
        """The time since the measurement began."""
        return (sum(self._ticks.values()) - self._before) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        while not self._is_done.wait(0.2):
            self._measure()

    def _measure(self) -> None:
        waiting = [self._pid]
        while waiting:
            pid = waiting.pop()
            process = Path("/proc") / str(pid)
            try:
                fields = (process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
                children = [task.read_text(encoding="ascii") for task in process.glob("task/*/children")]
            except OSError:
                continue
            # A process id may be reused by a later process, which has another start time.
            self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])
            if self._workers:
                waiting += [int(child) for line in children for child in line.split()]


def _memory_bytes(pid: int) -> int:
    """Return the peak resident memory from Linux's /proc; 0 elsewhere."""
    try:
        status = (Path("/proc") / str(pid) / "status").read_text(encoding="ascii")
    except OSError:
        return 0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(peak.split()[1]) << 10


def _print(line: str) -> None:
    print(line, flush=True)


def bench(
    events: int = 1_000_000,
    sides: Collection[str] = (),
    say: Callable[[str], None] = _print,
    log: Path | None = None,
) -> dict[str, Any]:
    """Print the lines of `mqproof bench audit`, each as soon as it is known, and return the result.

    Without `sides`, all are measured.

    Raises:
        SideError: a side does not exist. Also the errors of `measure`.
    """
    possible = [side for side in SIDES if not (log and side in _OF_DIRTY)]
    sides = sides or possible
    if unknown := [side for side in sides if side not in possible]:
        raise SideError(f"{', '.join(unknown)}: unknown variant, expected some of {'; '.join(possible)}")
    say(f"audit of {log or f'about {events} events'}, local[2], Spark {pyspark.__version__}")

    def report(*args: Any) -> None:
        say(_line(*args))

    # Eight kinds of anomalies: 1,000 in total, if the log has room for them.
    measured = measure(events, injected=min(125, events // 40_000), sides=sides, report=report, log=log)
    say(
        f"  {measured.events} events, {measured.log_bytes / measured.events:.1f} bytes each in Parquet;"
        f" Spark's process had {measured.memory_bytes >> 20} MiB at most"
    )
    for line in (*_found(measured), *_plan(measured)):
        say(f"  {line}")
    say("commit log decoded, one process")
    for body_bytes in (64, 1024, 16_384):
        say(_decoding(body_bytes))
    seconds = {side: [cost.seconds] for side, cost in measured.costs.items() if side in SIDES}
    return described("bench audit", [(f"{measured.events} events: s", seconds)], baseline="bare scan")


def _line(name: str, events: int, cost: Cost, scan: Cost | None) -> str:
    line = f"  {name:13} {cost.seconds:8.1f} s {cost.cpu_seconds:8.1f} s CPU"
    if not events:
        return line
    line += f" {events / cost.seconds:12.0f} events/s"
    if scan is None:
        return line
    cpu_ratio = cost.cpu_seconds / scan.cpu_seconds if scan.cpu_seconds else 0.0
    return f"{line}   {cost.seconds / scan.seconds:5.1f} scans, {cpu_ratio:5.1f} by CPU"


def _found(measured: Measured) -> list[str]:
    lines = []
    if measured.truth:
        exact = "exactly the injected ones" if measured.truth.exact else "NOT the injected ones"
        lines.append(f"{measured.truth.expected} violations in the dirty log, {exact}")
    if CLEAN in measured.found:
        lines.append(f"{measured.clean_findings} violations in the clean log")
    if measured.duckdb:
        lines.append(f"DuckDB {'finds' if measured.duckdb.exact else 'does NOT find'} the same")
    return lines


def _plan(measured: Measured) -> list[str]:
    if CLEAN not in measured.costs or measured.events < _PLANNED_FROM:
        return []
    run = Run(measured.events, measured.log_bytes, measured.costs[CLEAN].cpu_seconds)
    billion = plan(run, 1_000_000_000)
    return [
        f"a billion events like the clean ones: {billion.partitions} partitions,"
        f" {billion.core_hours:.1f} core hours, {billion.seconds:.0f} s"
        f" on {billion.executors} executors of {billion.executor_cores} cores"
        f" and {billion.executor_memory_bytes >> 20} MiB"
    ]


def _decoding(body_bytes: int) -> str:
    log = decode.measure(body_bytes)
    cat, rate = (log.mebibytes / seconds for seconds in (log.cat_seconds, log.decode_seconds))
    return (
        f"  {body_bytes:5} B bodies {rate:8.0f} MiB/s {log.records / log.decode_seconds:10.0f} records/s"
        f"   cat {cat:.0f} MiB/s, ratio {cat / rate:.1f}"
    )
