"""The results of an audit as metrics in Prometheus' text format (version 0.0.4).

The page of a run is written to a file. The textfile collector of Prometheus' node exporter reads it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mqproof.report.model import Result
from mqproof.report.write import write_text
from mqproof.spark_audit.judging.findings import all_found, query
from mqproof.spark_audit.judging.outcome import Audit
from mqproof.spark_audit.reporting.traffic_figures import QUANTILES, TrafficFigures
from mqproof.spec.events import Kind

SERIES_MAX: Final = 1_000
"""Maximum number of series of a metric; the metric mqproof_audit_series_left_out counts the others."""

METRICS: Final[dict[str, str]] = {
    "mqproof_audit_violations": "Violations found, by invariant and rule.",
    "mqproof_audit_lost_messages": "Acknowledged messages that a group has lost.",
    "mqproof_audit_repeated_deliveries": "Repeated deliveries, by cause; the cause none is a violation.",
    "mqproof_audit_unresolved_age_seconds": "Age of the oldest message that a group has not reached.",
    "mqproof_audit_lag_messages": "Stored messages behind the last delivery to a group.",
    "mqproof_audit_delivery_seconds": "Time from the send of a message to its first delivery to a group.",
    "mqproof_audit_verdict": "1 for the verdict of an invariant.",
    "mqproof_audit_events": "Events that the newest run examined, by kind.",
    "mqproof_audit_missing_rows": "Rows that are missing, unreadable or set aside.",
    "mqproof_audit_gaps": "Gap events: times from which nodes dropped rows.",
    "mqproof_audit_newest_event_timestamp_seconds": "Time of the newest event.",
    "mqproof_audit_finished_timestamp_seconds": "Time at which the newest run ended.",
    "mqproof_audit_duration_seconds": "Duration of the newest run.",
    "mqproof_audit_series_left_out": "Series that were left out because a metric has too many.",
}
"""Maps a metric to its meaning; all are gauges."""

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Series = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of a run, or of all runs of a watch."""

    findings: str
    """The table of all findings, for `query`."""
    events: Mapping[str, int]
    missing_rows: int
    newest_us: int
    seconds: float
    figures: TrafficFigures = field(default_factory=TrafficFigures)
    results: tuple[Result, ...] = ()


def measured(
    audit: Audit, seconds: float, findings: str | None = None, missing_rows: int | None = None
) -> Measured:
    """Return what an audit measured. A watch gives the findings and missing rows of all its runs."""
    seen = audit.overview
    missing = max(seen.missing_rows, audit.unreadable_rows + audit.set_aside_rows)
    return Measured(
        findings or all_found(audit.findings),
        seen.by_kind,
        missing if missing_rows is None else missing_rows,
        seen.last_ts,
        seconds,
        audit.figures or TrafficFigures(),
        audit.results if findings is None else (),
    )


def write_metrics(path: Path, of: Measured) -> None:
    """Write the page; another process reads the old one or the new one. Raises OSError."""
    write_text(path, page(of, time.time()))


def page(of: Measured, now_s: float) -> str:
    """Return the page of metrics."""
    lines: list[str] = []
    left_out = 0
    for name, series in _metrics(of, now_s).items():
        ordered = sorted(series, key=lambda each: (-each[1], sorted(each[0].items())))
        left_out += max(0, len(ordered) - SERIES_MAX)
        lines += _lines(name, ordered[:SERIES_MAX])
    return "".join([*lines, *_lines("mqproof_audit_series_left_out", [({}, left_out)])])


def _metrics(of: Measured, now_s: float) -> dict[str, list[Series]]:
    figures = of.figures
    return {
        "mqproof_audit_violations": _counted(
            of, ("invariant", "rule"), "SELECT invariant, rule, count(*)", "cause IS NULL"
        ),
        "mqproof_audit_lost_messages": _counted(
            of, ("topic", "group"), "SELECT topic, \"group\", count(DISTINCT msg_id)",
            "cause IS NULL AND invariant = 'DELIV-1' AND msg_id IS NOT NULL",
        ),
        "mqproof_audit_repeated_deliveries": _counted(
            of, ("topic", "group", "cause"), "SELECT topic, \"group\", coalesce(cause, 'none'), count(*)",
            "invariant = 'DELIV-3'",
        ),
        "mqproof_audit_unresolved_age_seconds": _counted(
            of, ("topic", "group"),
            f"SELECT topic, \"group\", greatest(0, {of.newest_us} - min(first_ts)) / 1e6",
            "invariant = 'DELIV-1' AND cause = 'unseen' AND first_ts IS NOT NULL",
        ),
        "mqproof_audit_lag_messages": [
            ({"topic": topic, "group": group}, lag) for topic, group, lag in figures.lag
        ],
        "mqproof_audit_delivery_seconds": [
            ({"topic": topic, "group": group, "quantile": f"{quantile:g}"}, wait / 1e6)
            for topic, group, waits in figures.waits
            for quantile, wait in zip(QUANTILES, waits, strict=True)
        ],
        "mqproof_audit_verdict": [
            ({"invariant": result.id, "verdict": str(result.verdict.value)}, 1) for result in of.results
        ],
        "mqproof_audit_events": [({"kind": kind}, rows) for kind, rows in of.events.items()],
        "mqproof_audit_missing_rows": [({}, of.missing_rows)],
        "mqproof_audit_gaps": [({}, of.events.get(Kind.GAP, 0))],
        "mqproof_audit_newest_event_timestamp_seconds": [({}, of.newest_us / 1e6)],
        "mqproof_audit_finished_timestamp_seconds": [({}, now_s)],
        "mqproof_audit_duration_seconds": [({}, of.seconds)],
    }  # fmt: skip


def _counted(of: Measured, labels: tuple[str, ...], select: str, condition: str) -> list[Series]:
    """Return a series for each group of findings; the last column is its value."""
    rows = query(f"{select} FROM {of.findings} WHERE {condition} GROUP BY ALL")
    return [
        (
            {name: "" if label is None else str(label) for name, label in zip(labels, row, strict=False)},
            row[-1],
        )
        for row in rows
    ]


def _lines(name: str, series: Iterable[Series]) -> Iterator[str]:
    yield f"# HELP {name} {METRICS[name].translate(_ESCAPES)}\n"
    yield f"# TYPE {name} gauge\n"
    for labels, value in series:
        shown = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
        yield f"{name}{{{shown}}} {value:.15g}\n" if shown else f"{name} {value:.15g}\n"
