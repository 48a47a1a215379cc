"""The outcome of an audit, and queries on its findings."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mqproof.report.model import Result
from mqproof.spark_audit.judging.findings import dataset
from mqproof.spark_audit.passes.profile import Overview

_ROW_GROUP: Final = 100_000


@dataclass(frozen=True, slots=True)
class Audit:
    overview: Overview
    tallies: dict[str, int]
    results: tuple[Result, ...]
    explained: Counter[tuple[str, str, str]]
    """Number of findings by (invariant, rule, cause): legal, but counted."""
    findings: Path
    """Folder with Parquet files of schema.FINDINGS, one folder per check."""
    deduplicated_rows: int = 0
    pictures: dict[str, list[Any]] = field(default_factory=dict)
    """The data of the plots; see reporting/plot_data.py."""
    withdrawn: int = 0
    """Number of violations of earlier runs that this run has refuted."""
    skew_us: int = 0
    """The clock skew that was allowed."""
    skew_seen_us: int = 0
    """The minimum clock skew that was observed."""
    unreadable_rows: int = 0
    """Rows of the input that are not events."""
    unreadable_traces: int = 0


def write_violations(audit: Audit, path: Path) -> int:
    """Write all violations into one Parquet file, batch by batch. Returns their number."""
    found = dataset(audit.findings)
    rows = 0
    with pq.ParquetWriter(path, found.schema) as writer:
        batches: list[pa.RecordBatch] = []
        for batch in found.scanner(filter=pc.field("cause").is_null()).to_batches():
            batches.append(batch)
            rows += batch.num_rows
            # Combine small batches: one row group for each would be mostly overhead.
            if sum(map(len, batches)) >= _ROW_GROUP:
                writer.write_table(pa.Table.from_batches(batches))
                batches = []
        if sum(map(len, batches)):
            writer.write_table(pa.Table.from_batches(batches))
    return rows


def violations(audit: Audit) -> list[dict[str, Any]]:
    """Return all violations in memory: for tests and small logs."""
    findings = dataset(audit.findings)
    rows: list[dict[str, Any]] = findings.to_table(filter=pc.field("cause").is_null()).to_pylist()
    return rows


def violations_by(audit: Audit, column: str) -> dict[str, int]:
    """Return the number of violations for each value of a column of schema.FINDINGS."""
    findings = dataset(audit.findings)
    named = findings.to_table([column], filter=pc.field("cause").is_null() & pc.field(column).is_valid())
    counts = named.group_by([column]).aggregate([([], "count_all")]).to_pylist()
    return {row[column]: row["count_all"] for row in counts}


def violation_times(audit: Audit, width_us: int) -> list[tuple[int, str, str, int]]:
    """Return (ts, invariant, rule, count) of the violations that began in each interval of `width_us`."""
    violation = pc.field("cause").is_null() & pc.field("first_ts").is_valid()
    shown = {
        "ts": pc.field("first_ts") - audit.overview.first_ts,
        "invariant": pc.field("invariant"),
        "rule": pc.field("rule"),
    }
    counts: Counter[tuple[int, str, str]] = Counter()
    for batch in dataset(audit.findings).scanner(shown, filter=violation).to_batches():
        bucket = pc.cast(
            pc.floor(pc.divide(pc.cast(batch["ts"], "float64", safe=False), float(width_us))), "int64"
        )
        rows = pa.table({"bucket": bucket, "invariant": batch["invariant"], "rule": batch["rule"]})
        for row in rows.group_by(rows.column_names).aggregate([([], "count_all")]).to_pylist():
            at = audit.overview.first_ts + row["bucket"] * width_us
            counts[at, row["invariant"], row["rule"]] += row["count_all"]
    return [(*key, count) for key, count in sorted(counts.items())]
