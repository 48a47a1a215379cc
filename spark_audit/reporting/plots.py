"""The plots of the page, as SVG: drawn from a few hundred numbers, not from rows."""

import io
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sized
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import EngFormatter

from mqproof.report.model import Figure
from mqproof.report.printable import one_line
from mqproof.spark_audit.checks import duplicates_explained
from mqproof.spark_audit.judging.outcome import Audit, violation_times, violations_by
from mqproof.spark_audit.reporting.explain import utc
from mqproof.spark_audit.reporting.plot_data import WAITS, bucket_us

_KINDS_MAX: Final = 8
_PLACES_MAX: Final = 12
"""Maximum number of topics or brokers in a plot."""
_GROUPS_MAX: Final = 9
"""Together with one entry for all others, this is the number of colours."""
_OTHERS: Final = "(others)"
_NAME_MAX: Final = 32
"""Maximum length of a name: a topic may have 127 characters and a group 255, too many for the plot."""
_PART_MAX: Final = 20
"""Maximum length where a topic and a broker are shown side by side."""
_QUEUES_MAX: Final = 24
_ZERO_WIDTH: Final = "\u200b"
_RED: Final = "#d03b3b"
_BLUE: Final = "#4a7fb5"
_TRAFFIC: Final = {"send": "sent", "append": "stored", "deliver": "delivered"}
_UNEXPLAINED: Final = "no cause"
_WIDTH_INCHES: Final = 11.5
_UNITS: Final = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
_GREY: Final = "#808890"  # readable on a white page and on a dark one
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

_COUNT: Final = EngFormatter(sep=" ")
"""Formats counts as 20 k or 50 M, to save space."""


def figures(audit: Audit, causes: Mapping[str, str]) -> tuple[Figure, ...]:
    """Return the plots for which the log has data; `causes` maps causes of findings to texts."""
    times = violation_times(audit, bucket_us(audit.overview))
    again = _duplicates(audit, causes)
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # matplotlib's font lacks the glyphs of many names, such as Chinese ones; the browser's fonts have
        # them.
        warnings.simplefilter("ignore", UserWarning)
        plots: tuple[tuple[Any, Callable[[Audit], Figure]], ...] = (
            (audit.pictures.get("over_time"), _over_time),
            (times, lambda audit: _timeline(audit, times)),
            (audit.pictures.get("topics"), _where),
            (again, lambda _: _repeats(again)),
            (audit.pictures.get("latency"), _latency),
            (audit.pictures.get("lag"), _lag),
            (audit.pictures.get("queues"), _queues),
        )
        return tuple(draw(audit) for numbers, draw in plots if numbers)


def _over_time(audit: Audit) -> Figure:
    totals: Counter[str] = Counter()
    for _, kind, count in audit.pictures["over_time"]:
        totals[kind] += count
    most = [kind for kind, _ in totals.most_common(_KINDS_MAX)]
    series: dict[str, Counter[int]] = defaultdict(Counter)
    for ts, kind, count in audit.pictures["over_time"]:
        series[kind if kind in most else _OTHERS][ts] += count
    # Include every bucket, even without events: a pause is drawn as zero, not as a straight line.
    buckets = range(audit.overview.first_ts, audit.overview.last_ts + 1, bucket_us(audit.overview))
    canvas, axes = _axes(2.6)
    for kind in (*most, *series.keys() - set(most)):
        axes.plot(
            [_elapsed(audit, ts) for ts in buckets],
            [series[kind][ts] for ts in buckets],
            label=_name(kind),
            lw=1.2,
        )
    axes.set_xlabel(_since(audit))
    width_s = bucket_us(audit.overview) / 1e6
    unit, unit_s = _unit_of(width_s)
    axes.set_ylabel(f"events in {width_s / unit_s:.3g} {unit}")
    _of_counts(axes.yaxis)
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return Figure("Events over time, by kind", _svg(canvas))


def _timeline(audit: Audit, times: list[tuple[int, str, str, int]]) -> Figure:
    """Draw a lane per rule; a mark is taller if there are more violations, by one step per factor of ten."""
    totals: Counter[tuple[str, str]] = Counter()
    for _, *rule, count in times:
        totals[rule[0], rule[1]] += count
    lanes = sorted(totals, reverse=True)
    canvas, axes = _axes(0.9 + 0.3 * len(lanes))
    half = bucket_us(audit.overview) // 2
    for lane, which in enumerate(lanes):
        own = [(_elapsed(audit, at + half), count) for at, *key, count in times if tuple(key) == which]
        tall = [min(0.45, 0.15 + 0.1 * math.log10(count)) for _, count in own]
        ends = [[lane + sign * height for height in tall] for sign in (-1, 1)]
        axes.vlines([at for at, _ in own], *ends, color=_RED, linewidth=1.5)
    names = [f"{invariant} {rule}: {totals[invariant, rule]:,}" for invariant, rule in lanes]
    axes.set_yticks(range(len(lanes)), names)
    axes.set_ylim(-0.7, len(lanes) - 0.3)
    axes.set_xlim(0, max(_elapsed(audit, audit.overview.last_ts), 1e-6))
    axes.set_xlabel(_since(audit))
    return Figure("Violations over time: a mark is taller where there are more", _svg(canvas))


def _where(audit: Audit) -> Figure:
    """Draw topics and brokers side by side: sent, stored, delivered, and violations in red."""
    sides = {column: _places(audit, column) for column in ("topic", "broker")}
    rows = max(map(len, sides.values()))
    canvas = Canvas(figsize=(_WIDTH_INCHES, 1.1 + 0.42 * rows), layout="constrained")
    for axes, (column, places) in zip(canvas.subplots(1, 2), sides.items(), strict=True):
        _bars(axes, places)
        axes.set_title(f"by {column}", fontsize=9)
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return Figure("Messages and violations, by topic and broker", _svg(canvas))


class _Place(NamedTuple):
    """A topic or a broker, or the entry for all others."""

    label: str
    traffic: Mapping[str, int]
    violations: int
    is_one: bool = True


def _places(audit: Audit, column: str) -> list[_Place]:
    """Return the places with most violations, then with most traffic, and an entry for all others."""
    traffic: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind, count in audit.pictures[f"{column}s"]:
        traffic[name][kind] += count
    wrong = violations_by(audit, column)
    ranked = sorted(
        traffic.keys() | wrong.keys(), key=lambda name: (-wrong.get(name, 0), -traffic[name].total(), name)
    )
    places = [_Place(_name(name), traffic[name], wrong.get(name, 0)) for name in ranked[:_PLACES_MAX]]
    if rest := ranked[_PLACES_MAX:]:
        together: Counter[str] = Counter()
        for name in rest:
            together.update(traffic[name])
        places.append(_Place(_others(rest), together, sum(wrong.get(name, 0) for name in rest), is_one=False))
    if placeless := sum(violations_by(audit, "invariant").values()) - sum(wrong.values()):
        places.append(_Place("no single place", {}, placeless, is_one=False))
    return places


def _bars(axes: Any, places: list[_Place]) -> None:
    # All others together may be far larger than any single place, so the scale ignores them.
    widest = max((count for place in places if place.is_one for count in place.traffic.values()), default=1)
    for i, (kind, label) in enumerate(_TRAFFIC.items()):
        at = [n + 0.1 + 0.27 * i for n in range(len(places))]
        counts = [place.traffic.get(kind, 0) for place in places]
        ends = [min(count, widest) for count in counts]
        axes.barh(at, ends, height=0.25, align="edge", label=label)
        for middle, count in zip(at, counts, strict=True):
            if count > widest:
                _beyond(axes, widest, middle + 0.125, count)
    for n, place in enumerate(places):
        if place.violations:
            end = min(max(place.traffic.values(), default=0), widest) + 0.01 * widest
            words = f"{place.violations:,} violation{'s' if place.violations > 1 else ''}"
            axes.text(end, n + 0.5, words, color=_RED, va="center", fontsize=8)
    axes.set_yticks([n + 0.5 for n in range(len(places))], [place.label for place in places])
    axes.set_ylim(max(len(places), 1), 0)
    # Room for the red text.
    axes.set_xlim(0, widest * 1.3)
    _of_counts(axes.xaxis)
    axes.grid(axis="y", visible=False)


def _beyond(axes: Any, end: float, middle: float, count: int) -> None:
    """Write the value of a truncated bar onto it."""
    axes.text(end, middle, f"{count:,} → ", color="white", ha="right", va="center", fontsize=7)


def _others(names: Sized) -> str:
    return f"{len(names):,} other{'s' if len(names) > 1 else ''}"


def _duplicates(audit: Audit, causes: Mapping[str, str]) -> dict[str, int]:
    """Return the number of repeated deliveries by cause, as text; unexplained ones come first."""
    invariant = duplicates_explained.INVARIANT
    counts: dict[str, int] = defaultdict(int)
    for result in audit.results:
        if result.id == invariant:
            # Results of traces for the same invariant have no rule.
            counts[_UNEXPLAINED] += sum(
                result.counts.get(rule, 0) for rule in duplicates_explained.CHECK.rules
            )
    for (of, _, cause), count in audit.explained.items():
        if of == invariant:
            counts[causes.get(cause, cause)] += count
    return {words: count for words, count in counts.items() if count}


def _repeats(counts: Mapping[str, int]) -> Figure:
    names = sorted(counts, key=lambda words: (words != _UNEXPLAINED, -counts[words]))
    canvas, axes = _axes(0.8 + 0.3 * len(names))
    colours = [_RED if words == _UNEXPLAINED else _BLUE for words in names]
    bars = axes.barh(range(len(names)), [counts[words] for words in names], color=colours, height=0.6)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3, color=_GREY, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    _of_counts(axes.xaxis)
    axes.margins(x=0.08)
    return Figure("Messages delivered again, by cause", _svg(canvas))


def _latency(audit: Audit) -> Figure:
    bins: list[Any] = audit.pictures["latency"]
    present = [what for what in WAITS if any(name == what for name, _, _ in bins)]
    canvas = Canvas(figsize=(_WIDTH_INCHES, 0.6 + 1.25 * len(present)), layout="constrained")
    shared = canvas.subplots(len(present), 1, sharex=True, squeeze=False)[:, 0]
    for axes, what in zip(shared, present, strict=True):
        own = [(low / 1000, count) for name, low, count in bins if name == what]
        # A bin is a tenth of a decade wide.
        axes.bar(
            [low for low, _ in own],
            [count for _, count in own],
            width=[low * 0.25 for low, _ in own],
            align="edge",
            color=_BLUE,
        )
        axes.set_xscale("log")
        axes.set_title(f"{what}: half within {_quantile(own, 0.5)}, 99 % within {_quantile(own, 0.99)}",
                       fontsize=9, loc="left")  # fmt: skip
        axes.set_ylabel("messages")
        _of_counts(axes.yaxis)
    shared[-1].set_xlabel(
        "milliseconds; shorter or negative times (clocks differ) count as 0.1; a sample if the log is large"
    )
    return Figure("Time from producer to consumer", _svg(canvas))


def _quantile(bins: list[tuple[float, int]], part: float) -> str:
    """Return the end of the bin that contains the quantile."""
    total, seen, end = sum(count for _, count in bins), 0, 0.0
    for low, count in sorted(bins):
        seen, end = seen + count, low * 10**0.1
        if seen >= part * total:
            break
    return f"{end:.0f} ms" if 10 <= end < 1000 else f"{end:.2g} ms" if end < 10 else f"{end / 1000:.3g} s"


def _lag(audit: Audit) -> Figure:
    lags: list[Any] = audit.pictures["lag"]
    canvas, axes = _axes(2.2)
    at = [_elapsed(audit, ts) for ts, _, _ in lags]
    axes.plot(at, [high / 1000 for _, _, high in lags], ".-", color=_RED, lw=1, ms=3, label="99 % within")
    axes.plot(
        at, [median / 1000 for _, median, _ in lags], ".-", color=_BLUE, lw=1, ms=3, label="half within"
    )
    axes.set_yscale("log")
    axes.set_xlim(0, max(_elapsed(audit, audit.overview.last_ts), 1e-6))
    axes.set_xlabel(_since(audit))
    axes.set_ylabel("milliseconds")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return Figure("Lag: time between storing and delivery", _svg(canvas))


def _queues(audit: Audit) -> Figure:
    """Draw a row per queue, for the queues with most deliveries, and one row for all others."""
    queues: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for broker, topic, queue_id, group, count in audit.pictures["queues"]:
        name = group or "(no group)"
        queues[topic, broker, queue_id][name] += count
        total[name] += count
    groups = sorted(group for group, _ in total.most_common(_GROUPS_MAX))
    ranked = sorted(queues, key=lambda place: (-queues[place].total(), _by_name(place)))
    shown = sorted(ranked[:_QUEUES_MAX], key=_by_name)
    rows: list[tuple[str, Mapping[str, float]]] = [(_queue_name(place), queues[place]) for place in shown]
    width = 1.15 * queues[ranked[0]].total()
    if rest := ranked[_QUEUES_MAX:]:
        together: Counter[str] = Counter()
        for place in rest:
            together.update(queues[place])
        # They may be far more than any single queue: the bar is scaled down, and shows the groups'
        # proportions.
        scale = min(1.0, width / together.total())
        rows.append((_others(rest), {group: count * scale for group, count in together.items()}))
    canvas, axes = _axes(max(2.6, 0.9 + 0.24 * len(rows)))
    _stacked(axes, rows, groups)
    axes.set_xlim(0, width)
    if rest and together.total() > width:
        _beyond(axes, width, len(shown), together.total())
    return Figure("Deliveries by queue and group", _svg(canvas))


def _stacked(axes: Any, rows: list[tuple[str, Mapping[str, float]]], groups: list[str]) -> None:
    ends = [0.0] * len(rows)
    for group in groups:
        counts = [counted.get(group, 0) for _, counted in rows]
        axes.barh(range(len(rows)), counts, left=ends, height=0.7, label=_name(group))
        ends = [end + count for end, count in zip(ends, counts, strict=True)]
    others = [sum(n for group, n in counted.items() if group not in groups) for _, counted in rows]
    if any(others):
        axes.barh(range(len(rows)), others, left=ends, height=0.7, label=_OTHERS)
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("deliveries")
    _of_counts(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _by_name(place: tuple[Any, ...]) -> tuple[str, str, int]:
    topic, broker, queue_id = place
    return topic or "", broker or "", -1 if queue_id is None else queue_id


def _name(text: str, most: int = _NAME_MAX) -> str:
    """Shorten a name from a log for matplotlib: one line, and not interpreted as a formula."""
    shown = one_line(text)
    if len(shown) > most:
        half = (most - 1) // 2
        shown = f"{shown[: most - 1 - half]}…{shown[-half:]}"
    shown = shown.replace("$", r"\$")
    # Legends omit labels that begin with an underscore.
    return _ZERO_WIDTH + shown if shown.startswith("_") else shown


def _queue_name(place: tuple[Any, ...]) -> str:
    return "/".join(_name(str(part), _PART_MAX) for part in place if part is not None)


def _axes(height_inches: float) -> tuple[Canvas, Any]:
    canvas = Canvas(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    return canvas, canvas.subplots()


def _of_counts(axis: Any) -> None:
    """Use integer ticks for counts."""
    axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter(_COUNT)


def _elapsed(audit: Audit, ts: int) -> float:
    """Return the time since the log began, in the unit of the axis."""
    return (ts - audit.overview.first_ts) / 1e6 / _unit(audit)[1]


def _unit(audit: Audit) -> tuple[str, int]:
    """Return the unit for the length of the log, and its seconds."""
    lasts_s = (audit.overview.last_ts - audit.overview.first_ts) / 1e6
    return _unit_of(lasts_s)


def _unit_of(lasts_s: float) -> tuple[str, int]:
    return next((unit for unit in _UNITS if lasts_s >= 2 * unit[1]), _UNITS[-1])


def _since(audit: Audit) -> str:
    first, _, _ = utc(audit.overview.first_ts).partition(".")
    return f"{_unit(audit)[0]} since {first} UTC"


def _svg(canvas: Canvas) -> str:
    out = io.StringIO()
    canvas.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()
