"""Sequence diagrams as SVG: lifelines from top to bottom, arrows for messages, one row per step.

`Diagram` describes the drawing and `render` draws it. The document is self-contained (no font, script or
style sheet) and depends on the diagram alone. It paints its own background, so that it is readable on light
and dark pages.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from textwrap import wrap
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from mqproof.report.labels import Box, Placement, Spot, text_width
from mqproof.report.printable import one_line


class Mark(StrEnum):
    """The effect of a step on its lifelines."""

    STEP = "step"
    CRASH = "crash"  # the lifeline is dead from here on
    RESTART = "restart"  # the lifeline is alive again


class Tone(StrEnum):
    """The colour of the last box of a diagram."""

    BAD = "bad"
    GOOD = "good"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Lifeline:
    name: str
    about: str = ""
    """A second, smaller line below the name."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the diagram."""

    action: str
    """The action's name in the model; shown at the left."""
    at: tuple[str, ...] = ()
    """The names of the lifelines that act; the label is placed at the first."""
    label: str = ""
    mark: Mark = Mark.STEP
    changes: tuple[str, ...] = ()
    """The changes, one line each; shown at the right."""


INITIALLY: Final = -1
"""The row before the first step."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message. Rows are indexes into `Diagram.steps`."""

    source: str
    target: str
    label: str
    sent: int
    """The row in which it was sent; INITIALLY if it is in the initial state."""
    ended: int | None
    """The row in which it was received or lost; None while it is still in transit."""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    title: str
    lifelines: tuple[Lifeline, ...]
    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...] = ()
    subtitle: str = ""
    initial: tuple[str, ...] = ()
    """The initial state, one line for each variable; shown at the right of the row before the first step."""
    verdict: str = ""
    """The headline of the box at the end, such as the violated invariant; empty for no box."""
    explanation: str = ""
    tone: Tone = Tone.NEUTRAL
    loop: tuple[int, int] | None = None
    """The first and the last row of the part that repeats for ever."""


_SANS: Final = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"
_MONO: Final = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_PAPER, _INK, _SOFT, _LINE, _STRIPE = "#ffffff", "#1c2430", "#5b6675", "#c3c9d1", "#f4f6f8"
_BLUE, _RED, _GREEN = "#1f5fa8", "#b3261e", "#1b7f4b"
_STATE: Final = f'font-family="{_MONO}" font-size="11.5" fill="{_SOFT}" xml:space="preserve"'
"""The style of values of variables."""
_RED_ROW, _GREEN_ROW = "#fdecea", "#eaf6ef"
_BOXES: Final = {
    Tone.BAD: ("#fce8e6", _RED),
    Tone.GOOD: ("#e3f4ea", _GREEN),
    Tone.NEUTRAL: ("#eef0f2", _SOFT),
}
_MARGIN: Final = 20
_LETTER: Final = 7.4
"""The width of a letter, large enough for the 13 px sans-serif text in any usual font."""
_MONO_LETTER: Final = 7.0
_TEXT_LINE: Final = 17
_SPACING_MIN: Final = 190
_SPACING_MAX: Final = 330
_STUB: Final = 38
"""The length of the beginning of an arrow that has not arrived, with the space to its label."""
_LABEL_SIZE: Final = 12
_STUB_SIZE: Final = 11
_SHARES: Final = (0.72, 0.5, 0.62, 0.82, 0.4, 0.9, 0.3, 0.2)
"""Where a label may be along a diagonal arrow, the best place first: near their ends arrows are separate."""
_ROOMS_MAX: Final = 60
"""How often a row is made higher until no label covers another."""
_LABEL_LETTERS: Final = 24
_CHANGE_LETTERS: Final = 52
_ROW_MIN: Final = 40


@dataclass(frozen=True, slots=True)
class _Layout:
    """The positions of all parts, in pixels."""

    x: dict[str, float]
    spacing: float
    """The distance between two lifelines."""
    left: float
    """The left edge of the lifelines' part."""
    changes: float
    """The left edge of the changes."""
    width: float
    head: float
    """The y of the lifelines' heads."""
    initial: float
    """The top of the row of the initial state."""
    tops: tuple[float, ...]
    """The top of each row, and the bottom of the last."""

    def middle(self, row: int) -> float:
        above = self.initial if row == INITIALLY else self.tops[row]
        return (above + self.tops[row + 1]) / 2


def render(diagram: Diagram) -> str:
    """Return the diagram as an SVG document; equal diagrams give equal text.

    Raises:
        ValueError: a step or an arrow names a lifeline, or a row, that the diagram does not have.
    """
    _check(diagram)
    layout, spots = _roomy(diagram)
    body = [*_title(diagram, layout), *_rows(diagram, layout), *_lifelines(diagram, layout)]
    body += [
        part for number, arrow in enumerate(diagram.arrows) for part in _arrow(arrow, spots[number], layout)
    ]
    body += [part for row, step in enumerate(diagram.steps) for part in _step(row, step, layout)]
    body += [_label_of(arrow, spots[number]) for number, arrow in enumerate(diagram.arrows)]
    body += _loop(diagram, layout)
    box, height = _verdict(diagram, layout)
    body += box
    size = f'width="{layout.width:.0f}" height="{height:.0f}" viewBox="0 0 {layout.width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={_quoted(diagram.title)}>'
    paper = f'<rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>'
    font = f'<g font-family="{_SANS}" font-size="13" fill="{_INK}">'
    return (
        "\n".join([head, f"<title>{_text(diagram.title)}</title>", paper, font, *body, "</g>", "</svg>"])
        + "\n"
    )


def _check(diagram: Diagram) -> None:
    known = {lifeline.name for lifeline in diagram.lifelines}
    named = [name for step in diagram.steps for name in step.at]
    named += [name for arrow in diagram.arrows for name in (arrow.source, arrow.target)]
    if unknown := [name for name in named if name not in known]:
        raise ValueError(
            f"diagram {diagram.title!r}: no lifeline {unknown[0]!r}, expected one of {sorted(known)}"
        )
    rows = [arrow.sent for arrow in diagram.arrows if arrow.sent != INITIALLY]
    rows += [arrow.ended for arrow in diagram.arrows if arrow.ended is not None]
    rows += diagram.loop or ()
    if unknown_rows := [row for row in rows if not 0 <= row < len(diagram.steps)]:
        raise ValueError(f"diagram {diagram.title!r}: no row {unknown_rows[0]}, it has {len(diagram.steps)}")


def _roomy(diagram: Diagram) -> tuple[_Layout, list[Spot]]:
    """Return a layout whose rows are high enough for all labels, and the spot of each arrow's label."""
    room: Counter[int] = Counter()
    for _ in range(_ROOMS_MAX):
        layout = _layout(diagram, room)
        spots, crowded = _spots(diagram, layout)
        if not crowded:
            break
        for row in crowded:
            room[row] += _TEXT_LINE
    return layout, spots


def _layout(diagram: Diagram, room: Mapping[int, int]) -> _Layout:
    """Return the positions, with `room` more pixels for each row."""
    longest = max((len(step.action) for step in diagram.steps), default=0)
    left = _MARGIN + 34 + longest * _LETTER + 16
    spacing = _spacing(diagram)
    x = {
        lifeline.name: left + spacing * 0.45 + index * spacing
        for index, lifeline in enumerate(diagram.lifelines)
    }
    # The label of the last lifeline is to its right.
    longest_label = max((len(line) for step in diagram.steps for line in _label(step)), default=0)
    beside = max(_SPACING_MIN / 2, text_width("x" * longest_label, _LABEL_SIZE) + 13)
    changes = max(x.values(), default=left) + beside + _MARGIN
    blocks = [_initial(diagram), *map(_changes, diagram.steps)]
    widest = max((len(line) for block in blocks for line in block), default=0)
    width = max(changes + widest * _MONO_LETTER + _MARGIN, _MARGIN * 2 + len(diagram.title) * 10.5)
    head = 58.0 + _TEXT_LINE * len(_subtitle(diagram, width))
    initial = head + 62
    tops = [initial]
    if diagram.initial or any(arrow.sent == INITIALLY for arrow in diagram.arrows):
        tops = [initial + _height(diagram, INITIALLY, len(_initial(diagram))) + room[INITIALLY]]
    for row, step in enumerate(diagram.steps):
        lines = max(len(_changes(step)), len(_label(step)))
        tops.append(tops[-1] + _height(diagram, row, lines) + room[row])
    return _Layout(x, spacing, left, changes, width, head, initial, tuple(tops))


def _height(diagram: Diagram, row: int, lines: int) -> float:
    return max(_ROW_MIN, max(lines, len(_on_their_way(diagram, row)), 1) * _TEXT_LINE + 14)


def _spacing(diagram: Diagram) -> float:
    """Return the distance of two lifelines at which most labels fit between them."""
    arrived = [text_width(a.label, _LABEL_SIZE) for a in diagram.arrows if a.ended is not None]
    waiting = [text_width(_stub_text(a), _STUB_SIZE) + _STUB for a in diagram.arrows if a.ended is None]
    return min(max([_SPACING_MIN, *(width + 24 for width in (*arrived, *waiting))]), _SPACING_MAX)


def _initial(diagram: Diagram) -> list[str]:
    return [line for each in diagram.initial for line in _wrapped(each, _CHANGE_LETTERS, "  ")]


def _spots(diagram: Diagram, layout: _Layout) -> tuple[list[Spot], set[int]]:
    """Return the spot of each arrow's label, and the rows in which a label covers something."""
    placement, crowded = Placement(), set()
    for row, step in enumerate(diagram.steps):
        y = layout.middle(row)
        placement.take(Spot(_MARGIN + 34, y + 4.5).box(step.action, 13))
        for name in step.at:
            placement.take(Box(layout.x[name] - 7, y - 7, layout.x[name] + 7, y + 7))
        for beside, line_y, line in _label_lines(row, step, layout):
            if placement.take(Spot(beside, line_y).box(line, _LABEL_SIZE)):
                crowded.add(row)
    spots = []
    for arrow in diagram.arrows:
        if arrow.ended is None:
            text, size, choices = _stub_text(arrow), _STUB_SIZE, _stub_ends(diagram, arrow, layout)
        else:
            text, size, choices = arrow.label, _LABEL_SIZE, _along(arrow, layout)
        spot, is_free = placement.place(text, size, choices)
        spots.append(spot)
        if not is_free:
            crowded.add(arrow.sent if arrow.ended is None else arrow.ended)
    return spots, crowded


def _along(arrow: Arrow, layout: _Layout) -> list[Spot]:
    """Return the spots along an arrow, above and below its line, within the lifelines' part."""
    (x1, y1), (x2, y2) = _ends(arrow, layout)
    half = text_width(arrow.label, _LABEL_SIZE) / 2
    low, high = layout.left + half, layout.changes - 8 - half
    shares = (0.5, 0.4, 0.6, 0.3, 0.7) if y1 == y2 else _SHARES
    return [
        Spot(min(max(x1 + (x2 - x1) * share, low), high), y1 + (y2 - y1) * share + below, "middle")
        for share in shares
        for below in (-6, 15)
    ]


def _changes(step: Step) -> list[str]:
    return [line for change in step.changes for line in _wrapped(change, _CHANGE_LETTERS, "  ")]


def _label(step: Step) -> list[str]:
    return _wrapped(step.label, _LABEL_LETTERS)


def _subtitle(diagram: Diagram, width: float) -> list[str]:
    return _wrapped(diagram.subtitle, int((width - 2 * _MARGIN) / _LETTER))


def _wrapped(text: str, letters: int, indent: str = "") -> list[str]:
    return wrap(one_line(text), letters, subsequent_indent=indent)


def _title(diagram: Diagram, layout: _Layout) -> Iterator[str]:
    yield _words(_MARGIN, 34, diagram.title, 'font-size="17" font-weight="650"')
    for index, line in enumerate(_subtitle(diagram, layout.width)):
        yield _words(_MARGIN, 56 + index * _TEXT_LINE, line, f'fill="{_SOFT}"')


def _rows(diagram: Diagram, layout: _Layout) -> Iterator[str]:
    if diagram.initial:
        y = layout.middle(INITIALLY)
        yield _words(_MARGIN + 34, y + 4.5, "initially", f'fill="{_SOFT}"')
        yield from _block(layout.changes, y, _initial(diagram), _STATE)
    for row, (top, bottom) in enumerate(pairwise(layout.tops)):
        fill = _row_paper(row, diagram.steps[row])
        size = f'width="{layout.width:.1f}" height="{bottom - top:.1f}"'
        yield f'<rect x="0" y="{top:.1f}" {size} fill="{fill}"/>'


def _row_paper(row: int, step: Step) -> str:
    plain = _STRIPE if row % 2 == 0 else _PAPER
    return {Mark.CRASH: _RED_ROW, Mark.RESTART: _GREEN_ROW}.get(step.mark, plain)


def _lifelines(diagram: Diagram, layout: _Layout) -> Iterator[str]:
    for lifeline in diagram.lifelines:
        x = layout.x[lifeline.name]
        marks = [
            (layout.middle(row), step.mark)
            for row, step in enumerate(diagram.steps)
            if lifeline.name in step.at and step.mark is not Mark.STEP
        ]
        places = [(layout.head + 46, Mark.RESTART), *marks, (layout.tops[-1], Mark.RESTART)]
        for (above, mark), (below, _) in pairwise(places):
            style = f'stroke="{_LINE}" stroke-width="2"'
            if mark is Mark.CRASH:
                style = f'stroke="{_RED}" stroke-width="1.5" stroke-dasharray="1 6" stroke-linecap="round"'
            yield f'<line x1="{x:.1f}" y1="{above:.1f}" x2="{x:.1f}" y2="{below:.1f}" {style}/>'
        wide = _SPACING_MIN - 24
        yield (
            f'<rect x="{x - wide / 2:.1f}" y="{layout.head:.1f}" width="{wide}" height="46" rx="6"'
            f' fill="#eaf1f9" stroke="{_BLUE}"/>'
        )
        y = layout.head + (21 if lifeline.about else 28)
        yield _words(x, y, lifeline.name, 'text-anchor="middle" font-weight="650"')
        about = f'text-anchor="middle" font-size="11" fill="{_SOFT}"'
        yield from [_words(x, y + 15, lifeline.about, about)] if lifeline.about else []


def _step(row: int, step: Step, layout: _Layout) -> Iterator[str]:
    y = layout.middle(row)
    yield _words(_MARGIN + 22, y + 4.5, str(row + 1), f'text-anchor="end" fill="{_SOFT}"')
    yield _words(_MARGIN + 34, y + 4.5, step.action, 'font-weight="600"')
    colour = {Mark.CRASH: _RED, Mark.RESTART: _GREEN}.get(step.mark, _BLUE)
    for name in step.at:
        yield from _sign(step.mark, layout.x[name], y)
    emphasis = ' font-weight="650"' if step.mark is not Mark.STEP else ""
    style = f'font-size="{_LABEL_SIZE}" fill="{colour}"{emphasis} {_halo(_row_paper(row, step))}'
    for x, line_y, line in _label_lines(row, step, layout):
        yield _words(x, line_y, line, style)
    yield from _block(layout.changes, y, _changes(step), _STATE)


def _label_lines(row: int, step: Step, layout: _Layout) -> Iterator[tuple[float, float, str]]:
    """Yield the place and the text of each line of a step's label, beside its first lifeline."""
    if step.at:
        lines = _label(step)
        for index, y in enumerate(_line_places(layout.middle(row), len(lines))):
            yield layout.x[step.at[0]] + 13, y, lines[index]


def _halo(paper: str) -> str:
    """Return the style that keeps text in front of lines readable."""
    return f'stroke="{paper}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'


def _sign(mark: Mark, x: float, y: float) -> Iterator[str]:
    if mark is Mark.CRASH:
        cross = f"M{x - 8:.1f} {y - 8:.1f}l16 16m0 -16l-16 16"
        yield f'<path d="{cross}" stroke="{_RED}" stroke-width="3.5" stroke-linecap="round"/>'
    elif mark is Mark.RESTART:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{_PAPER}" stroke="{_GREEN}" stroke-width="3"/>'
    else:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_BLUE}"/>'


def _ends(arrow: Arrow, layout: _Layout) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return both ends of an arrow that arrived or was lost."""
    assert arrow.ended is not None
    x1, y1 = layout.x[arrow.source], layout.middle(arrow.sent)
    x2, y2 = layout.x[arrow.target], layout.middle(arrow.ended)
    if arrow.source == arrow.target:
        x1, x2 = x1 + 4, x1 + 40
    if arrow.lost:
        x2, y2 = x1 + (x2 - x1) * 0.6, y1 + (y2 - y1) * 0.6
    return (x1, y1), (x2, y2)


def _arrow(arrow: Arrow, label: Spot, layout: _Layout) -> Iterator[str]:
    """Draw an arrow without its label. If it has not arrived, draw its beginning."""
    if arrow.ended is None:
        x, y = layout.x[arrow.source], layout.middle(arrow.sent)
        tip = label.x + (-4 if label.anchor == "start" else 4)
        style = f'fill="none" stroke="{_SOFT}" stroke-width="1.4" stroke-dasharray="4 3"'
        yield f'<path d="M{x:.1f} {y:.1f}L{tip:.1f} {label.y - 4:.1f}" {style}/>'
        return
    (x1, y1), (x2, y2) = _ends(arrow, layout)
    colour = _RED if arrow.lost else _INK
    dash = ' stroke-dasharray="5 4"' if arrow.lost else ""
    stroke = f'stroke="{colour}" stroke-width="1.6"{dash}'
    yield f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" {stroke}/>'
    yield from [_cross(x2, y2)] if arrow.lost else _head(x1, y1, x2, y2, colour)


def _label_of(arrow: Arrow, spot: Spot) -> str:
    if arrow.ended is None:
        text, style = _stub_text(arrow), f'font-size="{_STUB_SIZE}" fill="{_SOFT}"'
    else:
        text, style = arrow.label, f'font-size="{_LABEL_SIZE}" fill="{_RED if arrow.lost else _INK}"'
    return _words(spot.x, spot.y, text, f'text-anchor="{spot.anchor}" {style} {_halo(_PAPER)}')


def _on_their_way(diagram: Diagram, row: int) -> list[Arrow]:
    return [arrow for arrow in diagram.arrows if arrow.ended is None and arrow.sent == row]


def _stub_text(arrow: Arrow) -> str:
    return f"{arrow.label} → {arrow.target}"


def _stub_ends(diagram: Diagram, arrow: Arrow, layout: _Layout) -> list[Spot]:
    """Return where the label of a message that has not arrived may be; those of one step are stacked."""
    x, middle = layout.x[arrow.source], layout.middle(arrow.sent)
    arrows = _on_their_way(diagram, arrow.sent)
    index = next(number for number, other in enumerate(arrows) if other is arrow)
    y = middle + (index - (len(arrows) - 1) / 2) * _TEXT_LINE + 4
    is_right = layout.x[arrow.target] > x
    x, anchor = (x + _STUB, "start") if is_right else (x - _STUB, "end")
    return [Spot(x, y + lines * _TEXT_LINE, anchor) for lines in (0, 1, -1)]


def _head(x1: float, y1: float, x2: float, y2: float, colour: str) -> Iterator[str]:
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    # The tip touches the receiving step's dot, which is drawn later and has a radius of 5.
    tip_x, tip_y = x2 - dx * 5, y2 - dy * 5
    points = [
        (tip_x, tip_y),
        (tip_x - 11 * dx + 4.5 * dy, tip_y - 11 * dy - 4.5 * dx),
        (tip_x - 11 * dx - 4.5 * dy, tip_y - 11 * dy + 4.5 * dx),
    ]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polygon points="{corners}" fill="{colour}"/>'


def _cross(x: float, y: float) -> str:
    path = f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"
    return f'<path d="{path}" stroke="{_RED}" stroke-width="2.5" stroke-linecap="round"/>'


def _loop(diagram: Diagram, layout: _Layout) -> Iterator[str]:
    if diagram.loop is None:
        return
    top, bottom = layout.middle(diagram.loop[0]), layout.middle(diagram.loop[1])
    path = f"M16 {bottom:.1f}H8V{top:.1f}H14"
    yield f'<path d="{path}" fill="none" stroke="{_RED}" stroke-width="2"/>'
    yield from _head(8, top, 22, top, _RED)


def _verdict(diagram: Diagram, layout: _Layout) -> tuple[list[str], float]:
    """Return the parts of the box, and the height of the whole picture."""
    top = layout.tops[-1] + 14
    if not diagram.verdict:
        return [], top
    fill, colour = _BOXES[diagram.tone]
    wide = layout.width - 2 * _MARGIN
    lines = _wrapped(diagram.explanation, int((wide - 40) / _LETTER))
    height = 40 + _TEXT_LINE * len(lines)
    parts = [
        f'<rect x="{_MARGIN}" y="{top:.1f}" width="{wide:.1f}" height="{height}" rx="6" fill="{fill}"'
        f' stroke="{colour}" stroke-width="1.5"/>',
        _words(_MARGIN + 16, top + 25, diagram.verdict, f'font-size="15" font-weight="650" fill="{colour}"'),
    ]
    for index, line in enumerate(lines):
        parts.append(_words(_MARGIN + 16, top + 45 + index * _TEXT_LINE, line, ""))
    return parts, top + height + 16


def _block(x: float, y: float, lines: Sequence[str], style: str) -> Iterator[str]:
    """Draw lines of text centred vertically at y."""
    for line, line_y in zip(lines, _line_places(y, len(lines)), strict=True):
        yield _words(x, line_y, line, style)


def _line_places(y: float, lines: int) -> list[float]:
    first = y + 4.5 - (lines - 1) * _TEXT_LINE / 2
    return [first + index * _TEXT_LINE for index in range(lines)]


def _words(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " + style if style else ""}>{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(one_line(text))


def _quoted(text: str) -> str:
    return quoteattr(one_line(text))
