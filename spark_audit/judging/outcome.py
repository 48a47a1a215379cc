"""The outcome of an audit, and queries on its findings."""

import errno
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mqproof.report.model import Result
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.sql_text import identifier, quoted
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.schema import FINDING_COLUMNS


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
    set_aside_rows: int = 0
    """Rows with implausible times, which were not judged."""
    set_aside: tuple[str, ...] = ()
    """The first of these rows, as texts."""
    figures: Any = None
    """Lag and latencies of groups (reporting/traffic_figures.py), if they were asked for."""
    gaps: str = ""
    """The rows that nodes have dropped, as a text."""


def write_violations(audit: Audit, path: Path) -> int:
    """Write all violations into one Parquet file. Returns their number.

    Raises:
        OSError: the file cannot be written.
    """
    import duckdb

    found = f"SELECT * FROM {all_found(audit.findings)} WHERE cause IS NULL"
    try:
        rows = query(f"COPY ({found}) TO {quoted(str(path))} (FORMAT parquet)")
    except duckdb.IOException as error:
        raise OSError(errno.EIO, str(error).partition("\n")[0], str(path)) from None
    number: int = rows[0][0]
    return number


def write_skipped(rows: Any, folder: Path) -> None:
    """Write the rows that are not events into JSON files below the folder."""
    if not active.is_embedded():
        # The folder may exist, if it is empty.
        rows.coalesce(1).write.mode("append").json(str(folder))
        return
    folder.mkdir(exist_ok=True)
    lines = [msgspec.json.encode(row.asDict()) + b"\n" for row in rows.collect()]
    (folder / "part-0.json").write_bytes(b"".join(lines))


def violations(audit: Audit) -> list[dict[str, Any]]:
    """Return all violations in memory: for tests and small logs."""
    names = ", ".join(map(identifier, FINDING_COLUMNS))
    rows = query(f"SELECT {names} FROM {all_found(audit.findings)} WHERE cause IS NULL")
    return [dict(zip(FINDING_COLUMNS, row, strict=True)) for row in rows]


def violations_by(audit: Audit, column: str) -> dict[str, int]:
    """Return the number of violations for each value of a column of schema.FINDING_COLUMNS."""
    name = identifier(column)
    rows = query(
        f"SELECT {name}, count(*) FROM {all_found(audit.findings)}"
        f" WHERE cause IS NULL AND {name} IS NOT NULL GROUP BY ALL"
    )
    return dict(rows)


def violation_times(audit: Audit, width_us: int) -> list[tuple[int, str, str, int]]:
    """Return (ts, invariant, rule, count) of the violations that began in each interval of `width_us`."""
    begin = audit.overview.first_ts
    return query(
        f"SELECT {begin} + floor((first_ts - {begin}) / {width_us})::BIGINT * {width_us} AS at, invariant,"
        f" rule, count(*) FROM {all_found(audit.findings)} WHERE cause IS NULL AND first_ts IS NOT NULL"
        " GROUP BY ALL ORDER BY ALL"
    )
