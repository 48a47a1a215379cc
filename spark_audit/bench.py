"""Measures the audit: makes its own logs, and compares with others' work on the same files in the same run.

A bare Spark scan reads every column that the audit reads and sums it up by queue; Spark's own aggregation by
message id is what an audit without fingerprints cannot do without; DuckDB runs the same checks written by
hand (duckdb.sql), and must find the same violations. Ratios move less with the machine than events a second
do. No side includes the start of the JVM; the scan and the clean audit are run once before they are measured,
which compiles them and warms the file cache.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_audit import scenario
from spark_audit.audit import audit, violations
from spark_audit.evidence import Options
from spark_audit.generate import Wish, generate
from spark_audit.read import read
from spark_audit.session import SessionOptions, open_session
from spark_audit.sizing import Run, plan
from spark_audit.sources import bench as decode
from spark_audit.truth import Comparison, compare, read_truth

_SQL: Final = Path(__file__).with_name("duckdb.sql")
_EVENT_BYTES: Final = 13
"""About, in Parquet: sizes the session before there is a log."""
_WARM_EVENTS_MAX: Final = 20_000_000
"""A log larger than that warms itself up."""


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    cpu_seconds: float
    """User and system time of the process that did it and of its children."""


@dataclass(frozen=True, slots=True)
class Measured:
    events: int
    costs: dict[str, Cost]
    """Name of a side to what it took."""
    truth: Comparison
    """Of the dirty log."""
    clean_findings: int
    """Violations in the clean log: none, if all is well."""
    log_bytes: int
    """Of the clean log's files."""
    duckdb: Comparison | None
    """What DuckDB found in both logs, against what the audit did; None where DuckDB is not installed."""


def measure(events: int, planted: int = 125, seed: int = 1, memory: str = "6g") -> Measured:
    """Generate a clean and a dirty log, and measure every side. Stops its Spark session.

    Raises:
        ScenarioError: so few events have no room for so many anomalies. SessionError: Spark did not start.
    """
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory(prefix="mqproof-bench-") as folder:
        spark = open_session(SessionOptions(memory=memory, input_bytes=events * _EVENT_BYTES))

        def cost(name: str, work: Callable[[], Any], pid: int, *, warm: bool = False) -> Any:
            if warm and events <= _WARM_EVENTS_MAX:
                work()
            before, began = _cpu_seconds(pid), time.monotonic()
            result = work()
            costs[name] = Cost(time.monotonic() - began, _cpu_seconds(pid) - before)
            return result

        try:
            java = _java_pid(spark)
            logs = {name: Path(folder) / name for name in ("clean", "dirty")}
            made = cost("generate", lambda: generate(spark, Wish(events, {}, seed), logs["clean"]), java)
            generate(spark, Wish(events, dict.fromkeys(scenario.ANOMALIES, planted), seed), logs["dirty"])
            clean, dirty = (read(spark, [str(log)], Path(folder)).events for log in logs.values())

            def audited(rows: DataFrame, *, exact: bool = False) -> list[dict[str, Any]]:
                done = audit(rows, Path(folder), options=Options(exact=exact), pictures=False)
                return violations(done)

            cost("bare scan", lambda: _scan(clean), java, warm=True)
            cost("by message", lambda: _by_message(clean), java)
            clean_findings = cost("clean", lambda: audited(clean), java, warm=True)
            found = cost("dirty", lambda: audited(dirty), java)
            cost("worst case", lambda: audited(clean, exact=True), java)
            theirs = None
            if find_spec("duckdb"):
                theirs = cost("duckdb", lambda: _duckdb(logs["clean"]), os.getpid())
                theirs += cost("duckdb, dirty", lambda: _duckdb(logs["dirty"]), os.getpid())
            truth = compare(found, read_truth(logs["dirty"]))
            log_bytes = sum(file.stat().st_size for file in made.files)
        finally:
            spark.stop()
    agreed = None if theirs is None else compare(theirs, [*clean_findings, *found])
    return Measured(made.events, costs, truth, len(clean_findings), log_bytes, agreed)


def _scan(rows: DataFrame) -> None:
    rows.groupBy("kind", "topic", "queue_id", f.col("attrs")["broker"]).agg(
        f.count(f.lit(1)),
        *[f.max(name) for name in ("ts", "seq", "queue_offset", "commit_offset", "attempt")],
        f.bit_xor(f.xxhash64("msg_id", "node", "group", "client", "status")),
    ).collect()


def _by_message(rows: DataFrame) -> None:
    counted = rows.where("msg_id IS NOT NULL").groupBy("msg_id").agg(f.count(f.lit(1)).alias("rows"))
    counted.agg(f.max("rows")).collect()


def _duckdb(log: Path) -> list[dict[str, Any]]:
    """The violations that DuckDB finds."""
    import duckdb

    with duckdb.connect(config={"threads": 2, "memory_limit": "6GB"}) as connection:
        connection.execute("SET temp_directory = ?", [str(log.parent / "duckdb")])
        connection.execute(f"CREATE VIEW log AS FROM read_parquet('{log}/part-*.parquet')")
        found = connection.execute(_SQL.read_text(encoding="utf-8"))
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _java_pid(spark: SparkSession) -> int:
    # The launcher's shell has become Java by then.
    return int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def _cpu_seconds(pid: int) -> float:
    """User and system time of the process and its children so far, as Linux tells it; 0 elsewhere."""
    ticks, waiting = 0, [pid]
    while waiting:
        process = Path("/proc") / str(waiting.pop())
        try:
            fields = (process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
            children = [task.read_text(encoding="ascii") for task in process.glob("task/*/children")]
        except OSError:
            continue
        # Its own, and that of children which have ended.
        ticks += sum(map(int, fields[11:15]))
        waiting += [int(child) for line in children for child in line.split()]
    return ticks / os.sysconf("SC_CLK_TCK")


def _agreement(measured: Measured) -> str:
    if measured.duckdb is None:
        return "DuckDB is not installed"
    return "DuckDB finds the same" if measured.duckdb.exact else "DuckDB does NOT find the same"


def bench(events: int = 1_000_000) -> str:
    """A few lines for `mqproof bench audit`."""
    # Eight kinds of anomalies: 1,000 in all, where the log has room for them.
    measured = measure(events, planted=min(125, events // 40_000))
    scan = measured.costs["bare scan"]
    exact = "exactly the planted ones" if measured.truth.exact else "NOT the planted ones"
    clean = measured.costs["clean"]
    billion = plan(Run(measured.events, measured.log_bytes, clean.cpu_seconds), 1_000_000_000)

    def line(name: str, cost: Cost) -> str:
        rate, ratio = measured.events / cost.seconds, cost.seconds / scan.seconds
        cpu_ratio = cost.cpu_seconds / scan.cpu_seconds if scan.cpu_seconds else 0.0
        return (
            f"  {name:12} {cost.seconds:8.1f} s {cost.cpu_seconds:8.1f} s CPU {rate:12.0f} events/s"
            f"   {ratio:5.1f} scans, {cpu_ratio:5.1f} by CPU"
        )

    def decoding(body_bytes: int) -> str:
        log = decode.measure(body_bytes)
        cat, ours = (log.mebibytes / seconds for seconds in (log.cat_seconds, log.decode_seconds))
        return (
            f"  {body_bytes:5} B bodies {ours:8.0f} MiB/s {log.records / log.decode_seconds:10.0f} records/s"
            f"   cat {cat:.0f} MiB/s, ratio {cat / ours:.1f}"
        )

    return "\n".join(
        [
            f"audit of {measured.events} events, local[2], Spark {pyspark.__version__}",
            *[line(name, cost) for name, cost in measured.costs.items()],
            f"  violations   {measured.truth.expected:8} in the dirty log, {exact};"
            f" {measured.clean_findings} in the clean one; {_agreement(measured)}",
            f"  a billion events like the clean ones: {billion.partitions} partitions,"
            f" {billion.core_hours:.1f} core hours, {billion.seconds:.0f} s"
            f" on {billion.executors} executors of {billion.executor_cores} cores"
            f" and {billion.executor_memory_bytes >> 20} MiB",
            "commit log decoded, one process",
            *map(decoding, (64, 1024, 16_384)),
        ]
    )
