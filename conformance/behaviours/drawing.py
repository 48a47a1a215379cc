"""Draws the state graph, coloured by what a target was observed to reach.

Similar states are drawn as one: by a few variables if ALIKE has an entry for the model, else by the set of
enabled actions. Columns are the minimum number of steps from the start. Green is fully reached, amber partly,
red not at all.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any, Final

from mqproof.conformance.behaviours.cover import Steps
from mqproof.conformance.behaviours.json_values import order, plain
from mqproof.conformance.behaviours.replay import Taken

ALIKE: Final[dict[str, Callable[[Any], str]]] = {
    "Flush": lambda s: (
        f"{s.phase} {len(s.log)} {s.flushed} {s.dispatched} {s.system_crashes + s.process_crashes}"
    ),
    "QueueChoice": lambda s: f"{s.strategy} {len(s.route)} {len(s.tried)} {s.waiting} {sum(s.penalty)}",
    "OrderLock": lambda s: (
        f"{len(s.assigned)} {len(s.leaving)} {s.holder != 'none'} {s.held} {len(s.calls)} {len(s.lost_lock)}"
    ),
    "Group": lambda s: (
        f"{sum(s.service.sends)} {sum(map(len, s.service.queue))} {s.service.serving} {s.service.promise} "
        f"{sum(at >= 0 for positions in s.position for at in positions)}"
    ),
    "Delivery": lambda s: f"{sum(s.sends)} {sum(map(len, s.queue))} {s.serving} {s.promise}",
}
_COLUMN: Final = 70
_ROW: Final = 26
_MARGIN: Final = 50
_COLOURS: Final = {"all": "#1a7f37", "some": "#d29922", "none": "#cf222e"}


@dataclass(slots=True)
class _Group:
    depth: int
    states: int = 0
    reached: int = 0


@dataclass(slots=True)
class _Bundle:
    """All steps from one group to another."""

    steps: int = 0
    reached: int = 0
    actions: set[str] = field(default_factory=set)


def draw(
    model: str,
    target: str,
    steps: Steps[Any],
    states: Collection[str],
    taken: Collection[Taken],
    also: str = "",
) -> str:
    """Return an SVG document; `states` and `taken` are from a replay, `also` is shown below the title."""
    groups, bundles = _grouped(model, steps, states, taken)
    title = escape(_title(model, target, steps, states, taken))
    places, width, height = _places(groups)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_MARGIN}" y="22" font-size="15">{title}</text>',
        f'<text x="{_MARGIN}" y="40" fill="#57606a">{_legend()} <tspan>{escape(also)}</tspan></text>',
    ]
    parts += [_edge(places, ends, bundle) for ends, bundle in bundles.items() if ends[0] != ends[1]]
    parts += [_node(places[name], name, group) for name, group in groups.items()]
    return "\n".join([*parts, "</svg>", ""])


def _grouped(
    model: str, steps: Steps[Any], states: Collection[str], taken: Collection[Taken]
) -> tuple[dict[str, _Group], dict[tuple[str, str], _Bundle]]:
    texts = [order(plain(state)) for state in steps.states]
    words = lru_cache(maxsize=None)(lambda label: f"{label[0]} {order(label[1])}")
    names = _names(model, steps)
    depths = _depths(steps)
    groups: dict[str, _Group] = {}
    bundles: dict[tuple[str, str], _Bundle] = defaultdict(_Bundle)
    for number, name in enumerate(names):
        group = groups.setdefault(name, _Group(depths[number]))
        group.depth = min(group.depth, depths[number])
        group.states += 1
        group.reached += texts[number] in states
        for step in steps.out[number]:
            bundle = bundles[name, names[step.target]]
            bundle.steps += 1
            bundle.reached += (texts[number], words(step.label), texts[step.target]) in taken
            bundle.actions.add(step.label[0])
    return groups, bundles


def _names(model: str, steps: Steps[Any]) -> list[str]:
    alike = ALIKE.get(model)
    if alike is not None:
        return [alike(state) for state in steps.states]
    return [" ".join(sorted({step.label[0] for step in out})) for out in steps.out]


def _depths(steps: Steps[Any]) -> list[int]:
    """Return the depth of each state.

    The numbering is breadth first, so the first step to a state is on a shortest path.
    """
    depths = [0] * len(steps.states)
    seen = set(steps.initial)
    for number, out in enumerate(steps.out):
        for step in out:
            if step.target not in seen:
                seen.add(step.target)
                depths[step.target] = depths[number] + 1
    return depths


def _places(groups: Mapping[str, _Group]) -> tuple[dict[str, tuple[int, int]], int, int]:
    columns: dict[int, list[str]] = defaultdict(list)
    for name, group in groups.items():
        columns[group.depth].append(name)
    rows = max(map(len, columns.values()))
    height = 2 * _MARGIN + rows * _ROW
    places = {}
    for at, depth in enumerate(sorted(columns)):
        gap = (height - 2 * _MARGIN) / len(columns[depth])
        for row, name in enumerate(columns[depth]):
            # Columns are shifted against each other, so that a line through one is not hidden behind its
            # nodes.
            shift = gap * (0.35 if at % 2 else 0.65)
            places[name] = (_MARGIN + at * _COLUMN, round(_MARGIN + 10 + row * gap + shift))
    return places, max(640, 2 * _MARGIN + len(columns) * _COLUMN), height


def _edge(places: Mapping[str, tuple[int, int]], ends: tuple[str, str], bundle: _Bundle) -> str:
    (x1, y1), (x2, y2) = places[ends[0]], places[ends[1]]
    colour = _colour(bundle.reached, bundle.steps)
    title = escape(f"{', '.join(sorted(bundle.actions))}: {bundle.reached} of {bundle.steps} steps")
    bend = (x1 + x2) / 2
    # Forward edges take the shortest way; edges back or within a column are curved.
    curve = (
        f"C{bend} {y1} {bend} {y2} {x2} {y2}" if x2 > x1 else f"Q{bend + 30} {(y1 + y2) / 2 - 30} {x2} {y2}"
    )
    return (
        f'<path d="M{x1} {y1} {curve}" fill="none" stroke="{colour}" stroke-opacity="0.55" '
        f'stroke-width="{1 + min(2, bundle.steps / 400):.1f}"><title>{title}</title></path>'
    )


def _node(place: tuple[int, int], name: str, group: _Group) -> str:
    colour = _colour(group.reached, group.states)
    radius = 4 + min(6, group.states**0.5 / 8)
    title = escape(f"{name}: {group.reached} of {group.states} states")
    return (
        f'<circle cx="{place[0]}" cy="{place[1]}" r="{radius:.1f}" fill="{colour}" stroke="white">'
        f"<title>{title}</title></circle>"
    )


def _colour(reached: int, there_are: int) -> str:
    return _COLOURS["all" if reached == there_are else "some" if reached else "none"]


def _title(
    model: str, target: str, steps: Steps[Any], states: Collection[str], taken: Collection[Taken]
) -> str:
    seen, all_ = len(taken), steps.count
    return (
        f"{model} on {target}: {len(states):,} of {len(steps.states):,} states, {seen:,} of {all_:,} steps "
        f"({100 * seen / all_:.1f} %)"
    )


def _legend() -> str:
    words = {"all": "all reached", "some": "some", "none": "none"}
    return " ".join(f'<tspan fill="{_COLOURS[key]}">&#9679; {word}</tspan>' for key, word in words.items())
