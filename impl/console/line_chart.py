"""Charts of values over time, as SVG that is drawn on the server. Pure functions.

Colours and dashes come from the style sheet, by class, so that a chart fits a light and a dark page.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from markupsafe import Markup, escape

WIDTH: Final = 640
HEIGHT: Final = 200
_LEFT: Final = 56
_RIGHT: Final = 12
_TOP: Final = 18
_BOTTOM: Final = 24
_TICKS: Final = 4
SERIES_MAX: Final = 4
"""How many lines the style sheet can tell apart."""


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    points: Sequence[tuple[float, float | None]]
    """Times in seconds since the epoch, ascending, and values; None interrupts the line."""


def line_chart(title: str, series: Sequence[Series], begin_s: float, end_s: float) -> Markup:
    """Return a chart with axes. The title is what a screen reader says, with the last value of each line."""
    shown = series[:SERIES_MAX]
    top = _nice_top(max((value for each in shown for _, value in each.points if value), default=0.0))

    def place(at_s: float, value: float) -> tuple[float, float]:
        share = (at_s - begin_s) / max(end_s - begin_s, 1e-9)
        x = _LEFT + share * (WIDTH - _LEFT - _RIGHT)
        return x, HEIGHT - _BOTTOM - value / top * (HEIGHT - _TOP - _BOTTOM)

    parts = [_grid(top), _times(begin_s, end_s)]
    for number, each in enumerate(shown):
        inside = [(at_s, value) for at_s, value in each.points if begin_s <= at_s <= end_s]
        parts += _lines(number, [None if v is None else place(at_s, v) for at_s, v in inside])
    label = f"{title}: " + ", ".join(f"{each.name} {_last(each)}" for each in shown)
    return _svg("chart", WIDTH, HEIGHT, label, parts)


def sparkline(title: str, values: Sequence[float | None]) -> Markup:
    """Return a small line without axes."""
    width, height = 120, 28
    top = max((value for value in values if value), default=0.0) or 1.0
    step = (width - 4) / max(len(values) - 1, 1)
    places = [
        None if value is None else (2 + number * step, height - 3 - value / top * (height - 6))
        for number, value in enumerate(values)
    ]
    return _svg("sparkline", width, height, title, _lines(0, places))


def short(value: float) -> str:
    """Return a number in at most five characters, such as 12.5 or 3.2M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _svg(kind: str, width: int, height: int, label: str, parts: Sequence[str]) -> Markup:
    # Every text inside is a number, a time, or escaped here.
    inside = "".join(parts)
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
        f"{inside}</svg>"
    )


def _lines(number: int, places: Sequence[tuple[float, float] | None]) -> list[str]:
    """Return the line of one series, in pieces where a value is missing. A lone value is a dot."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            pieces.append([])
        else:
            pieces[-1].append(place)
    found = []
    for piece in filter(None, pieces):
        if len(piece) == 1:
            found.append(f'<circle class="s{number}" cx="{piece[0][0]:.1f}" cy="{piece[0][1]:.1f}" r="2.5"/>')
        else:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
            found.append(f'<polyline class="s{number}" points="{points}"/>')
    return found


def _grid(top: float) -> str:
    lines = []
    for number in range(_TICKS + 1):
        y = HEIGHT - _BOTTOM - number / _TICKS * (HEIGHT - _TOP - _BOTTOM)
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        value = short(top * number / _TICKS)
        lines.append(f'<text class="tick end" x="{_LEFT - 8}" y="{y + 4:.1f}">{value}</text>')
    return "".join(lines)


def _times(begin_s: float, end_s: float) -> str:
    found = []
    for share, kind in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LEFT + share * (WIDTH - _LEFT - _RIGHT)
        text = f"{datetime.fromtimestamp(begin_s + share * (end_s - begin_s)):%H:%M:%S}"
        found.append(f'<text class="tick {kind}" x="{x:.1f}" y="{HEIGHT - 6}">{text}</text>')
    return "".join(found)


def _nice_top(highest: float) -> float:
    """Return the end of the axis: a multiple of 1, 2 or 4 powers of ten that divides into even ticks."""
    if highest <= 0:
        return float(_TICKS)
    power = 10 ** math.floor(math.log10(highest / _TICKS))
    for factor in (1, 2, 5, 10):
        if factor * power * _TICKS >= highest:
            return float(factor * power * _TICKS)
    return highest


def _last(series: Series) -> str:
    values = [value for _, value in series.points if value is not None]
    return short(values[-1]) if values else "no value"
