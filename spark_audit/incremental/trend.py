"""The trend over all runs: which violations are new, which recur, and which are resolved."""

from pathlib import Path
from typing import Final

import msgspec

from mqproof.report.model import Table
from mqproof.report.write import write_bytes
from mqproof.spark_audit.engine.sql_text import identifier
from mqproof.spark_audit.incremental.carried_state import IDENTITY
from mqproof.spark_audit.incremental.state_folder import read_manifest
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spark_audit.passes.times import time_text

_FILE: Final = "trend.json"
_RUNS_KEPT: Final = 1_000
ROWS_MAX: Final = 50
RUNS_SHOWN: Final = 20
_SUBJECT: Final = ("invariant", "rule", "topic", "group")


class RunRecord(msgspec.Struct, frozen=True):
    run: int
    newest_us: int
    """Time of the run's newest event."""
    events: int
    new: int
    """Violations that no earlier run had found."""
    resolved: int
    """Violations of earlier runs that this run has refuted."""


def record_run(before: Path | None, into: Path, run: int, seen: Overview, resolved: int) -> None:
    """Add the run to the records of the state that it leaves, whose findings are complete."""
    rows = query(f"SELECT count(*) FROM {_violations(into)} WHERE night = {run}")
    record = RunRecord(run, seen.last_ts, seen.rows, int(rows[0][0]), resolved)
    records = [*(_records(before) if before else ()), record][-_RUNS_KEPT:]
    write_bytes(into / _FILE, msgspec.json.encode(records))


def _records(state: Path) -> list[RunRecord]:
    """Return the records of the runs; states of versions up to 0.2.0 have none."""
    try:
        return msgspec.json.decode((state / _FILE).read_bytes(), type=list[RunRecord])
    except FileNotFoundError:
        return []


def _violations(state: Path) -> str:
    return f"(SELECT * FROM {all_found(state / 'findings')} WHERE cause IS NULL)"


def trend_tables(before: Path | None, state: Path) -> tuple[Table, ...]:
    """Return the trend, given the states before and after the newest run; nothing without violations."""
    rows = _subjects(before, state)
    if not rows:
        return ()
    trend = Table(
        "Trend of violations",
        (*_SUBJECT, "trend", "new in this run", "earlier", "resolved in this run", "runs with new ones"),
        tuple(tuple("-" if value is None else str(value) for value in row) for row in rows[:ROWS_MAX]),
    )
    return trend, _runs(_records(state))


def _subjects(before: Path | None, state: Path) -> list[tuple[str | int | None, ...]]:
    """Return a row for each invariant, rule, topic and group: what changes is first."""
    run = read_manifest(state).run
    subject, identity = ", ".join(map(identifier, _SUBJECT)), ", ".join(map(identifier, IDENTITY))
    now = _violations(state)
    earlier = _violations(before) if before else now
    return query(
        f"WITH gone AS (SELECT {identity} FROM {earlier} EXCEPT SELECT {identity} FROM {now}), counted AS ("
        f" SELECT {subject}, count(*) FILTER (night = {run}) AS added,"
        f" count(*) FILTER (night < {run}) AS old, 0 AS resolved, count(DISTINCT night) AS runs"
        f" FROM {now} GROUP BY ALL"
        f" UNION ALL SELECT {subject}, 0, 0, count(*), 0 FROM gone GROUP BY ALL"
        f") SELECT {subject}, {_TREND}, sum(added)::BIGINT, sum(old)::BIGINT, sum(resolved)::BIGINT,"
        f" sum(runs)::BIGINT FROM counted GROUP BY {subject}"
        f" ORDER BY sum(added) DESC, sum(resolved) DESC, sum(old) DESC, {subject}"
    )


_TREND: Final = (
    "CASE WHEN sum(added) > 0 AND sum(old) > 0 THEN 'recurs' WHEN sum(added) > 0 THEN 'new'"
    " WHEN sum(old) = 0 THEN 'resolved' WHEN sum(resolved) > 0 THEN 'partly resolved'"
    " ELSE 'no new ones' END"
)


def _runs(records: list[RunRecord]) -> Table:
    return Table(
        "Runs",
        ("run", "newest event", "events", "new violations", "resolved violations"),
        tuple(
            (str(each.run), time_text(each.newest_us), str(each.events), str(each.new), str(each.resolved))
            for each in reversed(records[-RUNS_SHOWN:])
        ),
    )
