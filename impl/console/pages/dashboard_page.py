"""The dashboard: throughput and lag over time, of each broker and topic."""

from collections.abc import Sequence
from typing import Final

from mqproof.impl.admin import times
from mqproof.impl.console.line_chart import SERIES_MAX, Series, line_chart, short, sparkline
from mqproof.impl.console.page_parts import (
    Cell,
    Chart,
    Charts,
    Legend,
    Links,
    Note,
    Page,
    Part,
    Table,
    Tiles,
    columns,
    link,
)
from mqproof.impl.console.sample_history import Rate, SampleHistory
from mqproof.impl.console.sampler import PAUSE_S, Sampler
from mqproof.impl.console.visit import Visit

_SPANS: Final = {"5": 5, "15": 15, "60": 60}
"""The minutes that charts can show."""
_REFRESHES: Final = {"0": 0, "10": 10, "60": 60}
_BROKERS_MAX: Final = 8
_NO_ACCOUNT: Final = (
    "The dashboard has no samples: the brokers check accounts, and the console has none of its own. "
    "Start it with --account FILE."
)
_ROWS_MAX: Final = 50


async def dashboard(visit: Visit) -> Page:
    """Return the charts of the last minutes, and the topics with the most traffic."""
    sampler = visit.console.sampler
    minutes = visit.values.choice("minutes", _SPANS, "15")
    refresh_s = visit.values.choice("refresh", _REFRESHES, "0")
    now_s = visit.console.now_s()
    since_s = now_s - minutes * 60
    parts: list[Part] = [*_notes(visit), _tiles(sampler.history)]
    spans = [(f"{each} min", link("/", minutes=each, refresh=refresh_s)) for each in _SPANS.values()]
    parts.append(Links("Time span", spans, f"{minutes} min"))
    parts.append(_broker_charts(sampler.history, since_s, now_s))
    parts.append(_topics_table(sampler, since_s))
    names = {0: "No refresh", 10: "Every 10 s", 60: "Every minute"}
    refreshes = [(names[each], link("/", minutes=minutes, refresh=each)) for each in _REFRESHES.values()]
    parts.append(Links("Refresh this page", refreshes, names[refresh_s]))
    return Page("Dashboard", "/", parts, refresh_s=refresh_s)


def topic_chart(history: SampleHistory, topic: str, now_s: float) -> Charts:
    """Return the throughput and the lag of one topic in the last 15 minutes."""
    since_s = now_s - 15 * 60
    rates = history.rates(("topic", topic), since_s)
    charts = []
    if rates:
        throughput = [_series("sent/s", rates, "in_s"), _series("consumed/s", rates, "out_s")]
        begin_s = _begin_s(rates, since_s, now_s)
        charts = [
            _chart("Messages a second", throughput, begin_s, now_s),
            _chart("Not consumed", [_series("messages", rates, "behind")], begin_s, now_s),
        ]
    waits = f"No samples yet. The console samples every {PAUSE_S:.0f} s, and shows a rate after two samples."
    return Charts("The last 15 minutes", charts, waits)


def _notes(visit: Visit) -> list[Part]:
    sampler = visit.console.sampler
    if visit.account is not None and visit.console.config.account is None:
        return [Note("warn", _NO_ACCOUNT)]
    notes: list[Part] = []
    if sampler.problem:
        last = f" The charts end at {times.show(int(sampler.sampled_s * 1000))}." if sampler.sampled_s else ""
        notes.append(Note("bad", f"The cluster cannot be sampled: {sampler.problem}.{last}"))
    if sampler.topics_left_out:
        notes.append(
            Note("warn", f"{sampler.topics_left_out} topics are not sampled: the cluster has too many.")
        )
    return notes


def _tiles(history: SampleHistory) -> Tiles:
    brokers = [history.last(("broker", name)) for name in history.names("broker")]
    topics = [history.last(("topic", name)) for name in history.names("topic")]
    behind = [rate.behind for rate in topics if rate and rate.behind is not None]
    return Tiles(
        [
            ("Brokers", str(len(brokers)), "masters sampled"),
            ("Topics", str(len(topics)), "of applications"),
            ("Sent/s", _total([rate.in_s for rate in brokers if rate]), "by producers, to all brokers"),
            ("Delivered/s", _total([rate.out_s for rate in brokers if rate]), "to consumers"),
            ("Not consumed", short(sum(behind)) if behind else "–", "messages, over all groups"),
        ]
    )


def _broker_charts(history: SampleHistory, since_s: float, now_s: float) -> Charts:
    charts = []
    names = history.names("broker")
    for name in names[:_BROKERS_MAX]:
        rates = history.rates(("broker", name), since_s)
        begin_s, href = _begin_s(rates, since_s, now_s), link("/broker", name=name, id=0)
        series = [_series("sent/s", rates, "in_s"), _series("delivered/s", rates, "out_s")]
        charts.append(_chart(name, series, begin_s, now_s, href))
        lag = [_series("messages", rates, "behind")]
        charts.append(_chart(f"{name}: not consumed", lag, begin_s, now_s, href))
    waits = f"No samples yet. The console samples every {PAUSE_S:.0f} s, and shows a rate after two samples."
    more = f" The first {_BROKERS_MAX} of {len(names)}." if len(names) > _BROKERS_MAX else ""
    return Charts(f"Brokers: messages a second, and not consumed.{more}".removesuffix("."), charts, waits)


def _begin_s(rates: Sequence[Rate], since_s: float, now_s: float) -> float:
    """Return where a chart begins: with the first sample, if there are only a few."""
    return max(since_s, min(rates[0].at_s, now_s - 60)) if rates else since_s


def _topics_table(sampler: Sampler, since_s: float) -> Table:
    history = sampler.history
    found = [(name, history.rates(("topic", name), since_s)) for name in history.names("topic")]
    found.sort(key=lambda each: (-_weight(each[1]), each[0]))
    rows = [
        (
            Cell(name, href=link("/topic", name=name)),
            _rate(rates, "in_s"),
            _rate(rates, "out_s"),
            Cell("", chart=sparkline(f"{name}: sent a second", [rate.in_s for rate in rates])),
            _behind(rates),
            Cell("", chart=sparkline(f"{name}: not consumed", [rate.behind for rate in rates])),
        )
        for name, rates in found[:_ROWS_MAX]
    ]
    more = len(found) - len(rows)
    return Table(
        "Topics with the most traffic",
        columns("Topic", "#Sent/s", "#Consumed/s", "#Sent over time", "#Not consumed", "#Lag over time"),
        rows,
        "No topic of an application yet. Send a first message:",
        "mqproof send --namesrv HOST:PORT --topic Orders --body hello",
        f"{more} more are on the page of topics." if more else "",
    )


def _weight(rates: Sequence[Rate]) -> float:
    return sum((rate.in_s or 0) + (rate.out_s or 0) for rate in rates) + (
        (rates[-1].behind or 0) if rates else 0
    )


def _rate(rates: Sequence[Rate], name: str) -> str:
    value = getattr(rates[-1], name) if rates else None
    return "–" if value is None else short(value)


def _behind(rates: Sequence[Rate]) -> Cell:
    value = rates[-1].behind if rates else None
    if value is None:
        return Cell("–")
    return Cell(f"{value:,}", tone="warn") if value > 1000 else Cell(f"{value:,}")


def _series(name: str, rates: Sequence[Rate], attribute: str) -> Series:
    return Series(name, [(rate.at_s, getattr(rate, attribute)) for rate in rates])


def _chart(title: str, series: Sequence[Series], since_s: float, now_s: float, href: str = "") -> Chart:
    legend = []
    for each in series[:SERIES_MAX]:
        values = [value for _, value in each.points if value is not None]
        legend.append(Legend(each.name, short(values[-1]) if values else "–"))
    return Chart(title, line_chart(title, series, since_s, now_s), legend, href)


def _total(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return short(sum(known)) if known else "–"
