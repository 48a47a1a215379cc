"""The findings of all incremental runs so far, from the state that the last one left."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from mqproof.report.model import Report, Table
from mqproof.spark_audit.engine.sql_text import identifier
from mqproof.spark_audit.incremental.state_folder import UNREADABLE, IncrementalRun, read_manifest, state_path
from mqproof.spark_audit.incremental.trend import trend_tables
from mqproof.spark_audit.judging.findings import all_found, parquet_files, query
from mqproof.spark_audit.judging.outcome import Audit
from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spec.events import Kind


def violations_so_far(state: Path) -> list[tuple[str, str, int, int, int]]:
    """Return (invariant, rule, count, found in the newest run, not certain) of all violations in a state."""
    manifest = read_manifest(state)
    return query(
        f"SELECT invariant, rule, count(*), count(*) FILTER (night = {manifest.run}),"
        f" count(*) FILTER (NOT {_is_certain(manifest.watermark)})"
        f" FROM {_violations(state)} GROUP BY ALL ORDER BY ALL"
    )


def _violations(state: Path) -> str:
    return f"(SELECT * FROM {all_found(state / 'findings')} WHERE cause IS NULL)"


def events_so_far(state: Path) -> int:
    """Return the number of events of all runs that a state remembers."""
    return _events(state, "true")


def gaps_so_far(state: Path) -> int:
    """Return the number of `gap` events of all runs: times from which nodes dropped rows."""
    return _events(state, f"kind = '{Kind.GAP}'")


def _events(state: Path, condition: str) -> int:
    rows = query(f"SELECT sum(rows) FROM {parquet_files(state / 'profile')} WHERE {condition}")
    return int(rows[0][0] or 0)


def rows_missing(state: Path) -> int:
    """Return the number of gaps in sequence numbers or of rows that were not events, whichever is larger.

    At most this many violations may have an explanation that cannot be read.
    """
    kept = sorted((state.parent / UNREADABLE).rglob("*.json"))
    unreadable = sum(bool(line.strip()) for file in kept for line in file.read_bytes().splitlines())
    return max(read_manifest(state).missing_rows, unreadable)


def _is_certain(watermark: int) -> str:
    """Return the condition that no row allowed by `late` can change the finding.

    A lost message may still be delivered later.
    """
    return f"coalesce(final OR last_ts < {watermark}, false)"


def certain_now(state: Path) -> list[dict[str, Any]]:
    """Return violations that became certain in this state: their evidence is now older than `late` allows."""
    manifest = read_manifest(state)
    earlier = state_path(state.parent, manifest.run - 1)
    before = read_manifest(earlier).watermark if earlier.exists() else 0
    names = (*FINDING_COLUMNS, "night", "final")
    is_new = f"night = {manifest.run} OR NOT coalesce(last_ts < {before}, false)"
    rows = query(
        f"SELECT {', '.join(map(identifier, names))} FROM {_violations(state)}"
        f" WHERE {_is_certain(manifest.watermark)} AND ({is_new})"
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def with_history(report: Report, audit: Audit, run: IncrementalRun, state: Path | None) -> Report:
    """Return the report with the findings of all runs so far. `state` is the state that this run leaves."""
    facts = {
        "run": f"{run.number}: only violations that no earlier run reported",
        "withdrawn": f"{audit.withdrawn} violations of earlier runs: this run explains them",
    }
    rows = violations_so_far(state) if state else []
    table = Table(
        "Violations of all runs so far",
        ("invariant", "rule", "count", "new in this run", "not certain yet"),
        tuple(tuple(map(str, row)) for row in rows),
    )
    trend = trend_tables(run.before, state) if state else ()
    own = ((table,) if rows else ()) + trend
    return replace(report, facts=facts | report.facts, tables=own + report.tables)
