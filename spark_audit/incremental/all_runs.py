"""The findings of all incremental runs so far, from the state that the last one left."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from mqproof.report.model import Report, Table
from mqproof.spark_audit.incremental.state_folder import UNREADABLE, IncrementalRun, read_manifest, state_path
from mqproof.spark_audit.judging.outcome import Audit
from mqproof.spec.events import Kind


def violations_so_far(state: Path) -> list[tuple[str, str, int, int, int]]:
    """Return (invariant, rule, count, found in the newest run, not certain) of all violations in a state."""
    manifest = read_manifest(state)
    known = ds.dataset(str(state / "findings"), format="parquet").scanner(
        {
            "invariant": pc.field("invariant"),
            "rule": pc.field("rule"),
            "is_new": pc.field("night") == manifest.run,
            "is_certain": pc.coalesce(_is_certain(manifest.watermark), pc.scalar(False)),
        },
        filter=pc.field("cause").is_null(),
    )
    counts: Counter[tuple[str, str]] = Counter()
    new: Counter[tuple[str, str]] = Counter()
    open_: Counter[tuple[str, str]] = Counter()
    sorts = (
        known.to_table()
        .group_by(["invariant", "rule", "is_new", "is_certain"])
        .aggregate([([], "count_all")])
    )
    for row in sorts.to_pylist():
        key = (row["invariant"], row["rule"])
        counts[key] += row["count_all"]
        new[key] += row["count_all"] * row["is_new"]
        open_[key] += row["count_all"] * (not row["is_certain"])
    return [(*key, counts[key], new[key], open_[key]) for key in sorted(counts)]


def events_so_far(state: Path) -> int:
    """Return the number of events of all runs that a state remembers."""
    return sum(ds.dataset(str(state / "profile"), format="parquet").to_table(["rows"])["rows"].to_pylist())


def gaps_so_far(state: Path) -> int:
    """Return the number of `gap` events of all runs: times from which nodes dropped rows."""
    profile = ds.dataset(str(state / "profile"), format="parquet")
    return sum(profile.to_table(["rows"], filter=pc.field("kind") == Kind.GAP)["rows"].to_pylist())


def rows_missing(state: Path) -> int:
    """Return the number of gaps in sequence numbers or of rows that were not events, whichever is larger.

    At most this many violations may have an explanation that cannot be read.
    """
    kept = sorted((state.parent / UNREADABLE).rglob("*.json"))
    unreadable = sum(bool(line.strip()) for file in kept for line in file.read_bytes().splitlines())
    return max(read_manifest(state).missing_rows, unreadable)


def _is_certain(watermark: int) -> pc.Expression:
    """Return the condition that no row allowed by `late` can change the finding.

    A lost message may still be delivered later.
    """
    return pc.field("final") | (pc.field("last_ts") < watermark)


def certain_now(state: Path) -> list[dict[str, Any]]:
    """Return violations that became certain in this state: their evidence is now older than `late` allows."""
    manifest = read_manifest(state)
    earlier = state_path(state.parent, manifest.run - 1)
    before = read_manifest(earlier).watermark if earlier.exists() else 0
    known = ds.dataset(str(state / "findings"), format="parquet")
    certain = known.to_table(filter=pc.field("cause").is_null() & _is_certain(manifest.watermark)).to_pylist()
    return [row for row in certain if row["night"] == manifest.run or not _was_certain(row, before)]


def _was_certain(row: Mapping[str, Any], watermark: int) -> bool:
    return row["last_ts"] is not None and row["last_ts"] < watermark


def with_history(report: Report, audit: Audit, run: IncrementalRun, state: Path | None) -> Report:
    """Return the report with the findings of all runs so far. `state` is the state that this run leaves."""
    facts = {
        "night": f"{run.number}: only violations that no earlier run reported",
        "taken back": f"{audit.withdrawn} violations of earlier runs are withdrawn: this run explains them",
    }
    rows = violations_so_far(state) if state else []
    table = Table(
        "Violations of all runs so far",
        ("invariant", "rule", "count", "new in this run", "not certain yet"),
        tuple(tuple(map(str, row)) for row in rows),
    )
    return replace(report, facts=facts | report.facts, tables=((table,) if rows else ()) + report.tables)
