"""The plots of the page, as SVG: drawn from a few hundred numbers, never from rows."""

import io
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from report.model import Figure
from spark_audit.audit import Audit, bucket_us, violation_times

_KINDS_MAX: Final = 8
_WIDTH_INCHES: Final = 11.5
_GREY: Final = "#808890"  # reads on a white page and on a dark one
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mqproof",
    "font.size": 9,
    "text.color": _GREY,
    "axes.labelcolor": _GREY,
    "axes.edgecolor": _GREY,
    "axes.titlecolor": _GREY,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "axes.grid": True,
    "grid.color": _GREY,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def figures(audit: Audit) -> tuple[Figure, ...]:
    """Those plots for which the log has numbers."""
    drawn = []
    with mpl.rc_context(_STYLE):
        if audit.pictures.get("over_time"):
            drawn.append(_over_time(audit))
        if times := violation_times(audit):
            drawn.append(_timeline(audit, times))
        if audit.pictures.get("latency"):
            drawn.append(_latency(audit))
        if audit.pictures.get("queues"):
            drawn.append(_queues(audit))
    return tuple(drawn)


def _over_time(audit: Audit) -> Figure:
    series: dict[str, dict[int, int]] = defaultdict(dict)
    for ts, kind, count in audit.pictures["over_time"]:
        series[kind][ts] = count
    most = sorted(series, key=lambda kind: -sum(series[kind].values()))[:_KINDS_MAX]
    # Every bucket, also those in which nothing happened: a pause is a zero, not a straight line.
    buckets = range(audit.overview.first_ts, audit.overview.last_ts + 1, bucket_us(audit.overview))
    canvas, axes = _axes(2.6)
    for kind in most:
        axes.plot(
            [_seconds(audit, ts) for ts in buckets],
            [series[kind].get(ts, 0) for ts in buckets],
            label=kind,
            lw=1.2,
        )
    axes.set_xlabel(_since(audit))
    axes.set_ylabel(f"events in {bucket_us(audit.overview) / 1e6:.3g} s")
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return Figure("Events over time, by kind", _svg(canvas))


def _timeline(audit: Audit, times: list[tuple[int, str, str]]) -> Figure:
    lanes = sorted({(invariant, rule) for _, invariant, rule in times}, reverse=True)
    canvas, axes = _axes(0.9 + 0.3 * len(lanes))
    for lane, key in enumerate(lanes):
        at = [_seconds(audit, ts) for ts, *which in times if tuple(which) == key]
        axes.plot(at, [lane] * len(at), "|", color="#d03b3b", markersize=12, markeredgewidth=1.5)
    axes.set_yticks(range(len(lanes)), [f"{invariant} {rule}" for invariant, rule in lanes])
    axes.set_ylim(-0.7, len(lanes) - 0.3)
    axes.set_xlim(0, max(_seconds(audit, audit.overview.last_ts), 1e-6))
    axes.set_xlabel(_since(audit))
    return Figure("Violations over time", _svg(canvas))


def _latency(audit: Audit) -> Figure:
    bins: list[Any] = audit.pictures["latency"]
    canvas, axes = _axes(2.2)
    left = [low / 1000 for low, _ in bins]
    # A bin is a tenth of a decade wide.
    axes.bar(
        left, [count for _, count in bins], width=[low * 0.25 for low in left], align="edge", color="#4a7fb5"
    )
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds from the first send to SEND_OK")
    axes.set_ylabel("messages, or a sample")
    return Figure("How long an acknowledgement took", _svg(canvas))


def _queues(audit: Audit) -> Figure:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for broker, topic, queue_id, group, rows in audit.pictures["queues"]:
        label = "/".join(str(part) for part in (topic, broker, queue_id) if part is not None)
        counts[label][group or "(no group)"] = rows
    labels, groups = list(counts), sorted({group for cell in counts.values() for group in cell})
    canvas, axes = _axes(2.6)
    width = 0.8 / len(groups)
    for i, group in enumerate(groups):
        at = [n + i * width for n in range(len(labels))]
        axes.bar(
            at, [counts[label].get(group, 0) for label in labels], width=width, label=group, align="edge"
        )
    step = max(1, len(labels) // 24)
    axes.set_xticks([n + 0.4 for n in range(0, len(labels), step)], labels[::step], rotation=40, ha="right")
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("deliveries")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return Figure("Deliveries by queue and group", _svg(canvas))


def _axes(height_inches: float) -> tuple[Canvas, Any]:
    canvas = Canvas(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    return canvas, canvas.subplots()


def _seconds(audit: Audit, ts: int) -> float:
    return (ts - audit.overview.first_ts) / 1e6


def _since(audit: Audit) -> str:
    first = datetime.fromtimestamp(audit.overview.first_ts / 1e6, UTC)
    return f"seconds since {first:%Y-%m-%d %H:%M:%S} UTC"


def _svg(canvas: Canvas) -> str:
    out = io.StringIO()
    canvas.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()
