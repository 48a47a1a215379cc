"""Measures the audit: makes its own log, and compares with a bare Spark scan of the same files in the same
run.

The ratio says what the audit costs over reading the data at all; it moves less with the machine than events a
second do. Both sides include no start of the JVM; the first scan warms the file cache for both.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark.sql import functions as f

from spark_audit import scenario
from spark_audit.audit import audit, violations
from spark_audit.generate import Wish, generate
from spark_audit.read import read
from spark_audit.session import SessionOptions, open_session
from spark_audit.sources import bench as decode
from spark_audit.truth import Comparison, compare, read_truth


@dataclass(frozen=True, slots=True)
class Measured:
    events: int
    generate_seconds: float
    scan_seconds: float
    """Read every column the audit reads, count by kind and queue."""
    audit_seconds: float
    truth: Comparison

    @property
    def events_a_second(self) -> float:
        return self.events / self.audit_seconds

    @property
    def ratio(self) -> float:
        return self.audit_seconds / self.scan_seconds


def measure(events: int, planted: int = 10, seed: int = 1, master: str = "local[2]") -> Measured:
    """Generate, scan, audit and compare with the truth. Stops its Spark session.

    Raises:
        ScenarioError: so few events have no room for so many anomalies. SessionError: Spark did not start.
    """
    with tempfile.TemporaryDirectory(prefix="mqproof-bench-") as folder:
        log = Path(folder) / "log"
        started = time.monotonic()
        made = generate(Wish(events, dict.fromkeys(scenario.ANOMALIES, planted), seed), log)
        generated = time.monotonic()
        size = sum(file.stat().st_size for file in made.files)
        spark = open_session(SessionOptions(master=master, input_bytes=size))
        try:
            rows = read(spark, [str(log)], Path(folder)).events
            begun = time.monotonic()
            rows.groupBy("kind", "topic", "queue_id").agg(
                f.count(f.lit(1)), f.sum("queue_offset"), f.max("msg_id"), f.max("ts")
            ).collect()
            scanned = time.monotonic()
            done = audit(rows, Path(folder), pictures=False)
            audited = time.monotonic()
            truth = compare(violations(done), read_truth(log))
        finally:
            spark.stop()
    return Measured(made.events, generated - started, scanned - begun, audited - scanned, truth)


def bench(events: int = 1_000_000) -> str:
    """A few lines for `mqproof bench audit`."""
    measured = measure(events)
    exact = "exactly the planted ones" if measured.truth.exact else "NOT the planted ones"

    def line(what: str, seconds: float) -> str:
        return f"  {what:12} {seconds:8.1f} s {measured.events / seconds:12.0f} events/s"

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
            line("generate", measured.generate_seconds),
            line("bare scan", measured.scan_seconds),
            line("six checks", measured.audit_seconds),
            f"  {'ratio':12} {measured.ratio:8.1f}   audit / scan",
            f"  {'violations':12} {measured.truth.expected:8}   {exact}",
            "commit log decoded, one process",
            *map(decoding, (64, 1024, 16_384)),
        ]
    )
