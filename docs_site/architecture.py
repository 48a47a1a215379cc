"""Draws the parts of mqproof and every import between them, as docs/explanation/architecture.svg.

    python -m docs_site.architecture

writes the picture. A part is a box; the boxes are in the order of the layers. Every part that imports others
has a lane at the right side, and an arrow from its lane into each part that it imports.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import grimp

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "explanation" / "architecture.svg"

PARTS: Final = {
    "mqproof": "command line, demo, public API",
    "spark_audit": "audit of logs, stores and topics",
    "fuzz": "fuzz targets, simulated clusters",
    "conformance": "suites, wire cases, histories, traces",
    "reference": "executable model, explorer, proofs",
    "impl": "name server, broker, store, client",
    "spec": "catalogue, TLA+ models, TLC runner",
    "report": "result model and its renderers",
}
"""The parts from the top layer to the bottom one, each with its contents. `mqproof` is the package itself."""

_COLOURS: Final = ("#1f4e79", "#b3470e", "#5b3a8e", "#0b7a5c", "#a8174c", "#3b6ea5", "#6b6b00", "#444444")
_WIDTH: Final = 400
_LEFT: Final = 10
_TOP: Final = 34
_BOX_WIDTH: Final = 254
_BOX_HEIGHT: Final = 56
_GAP: Final = 12
_LANE: Final = 15
_ENTRY: Final = 6
_SCALE: Final = 1.2

_LEGEND: Final = "An arrow leads from a part to a part that it imports."
_STYLE: Final = """
    .box { fill: #f4f7fa; stroke: #8a9aa8; stroke-width: 1 }
    .name { font-weight: 600; font-size: 14px; fill: #12263a }
    .text { font-size: 12px; fill: #34444f }
    .line { fill: none; stroke-width: 1.5 }"""

Arrow = tuple[str, str]
"""The importing part and the imported one."""


def arrows() -> list[Arrow]:
    """Return every import between two parts, late imports and modules named in strings included."""
    graph = grimp.build_graph("mqproof", cache_dir=None)
    imports = {
        (_part(module), _part(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    }
    order = list(PARTS)
    found = {(source, target) for source, target in imports | set(_by_name()) if source != target}
    return sorted(found, key=lambda arrow: (order.index(arrow[0]), order.index(arrow[1])))


def picture(among: list[Arrow]) -> str:
    """Return the picture of these arrows as SVG."""
    height = _TOP + len(PARTS) * (_BOX_HEIGHT + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'width="{_WIDTH * _SCALE:.0f}" height="{height * _SCALE:.0f}" font-family="system-ui, sans-serif">',
        "  <title>The parts of mqproof; an arrow leads from a part to a part that it imports</title>",
        f"  <style>{_STYLE}\n  </style>",
        f'  <rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'  <text class="text" x="{_LEFT}" y="20">{_LEGEND}</text>',
    ]
    for place, (part, contents) in enumerate(PARTS.items()):
        lines += _box(place, part, contents)
    for place, part in enumerate(PARTS):
        targets = [list(PARTS).index(target) for source, target in among if source == part]
        lines += _lane(place, targets)
    return "\n".join([*lines, "</svg>", ""])


def _part(module: str) -> str:
    """The part of a module; the modules of the package itself are `mqproof`."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] in PARTS else "mqproof"


def _by_name() -> Iterator[Arrow]:
    """The parts that the package names in strings: the command line loads the modules of its commands so."""
    for file in (ROOT / "mqproof").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and str(node.value).startswith("mqproof."):
                yield "mqproof", _part(str(node.value))


def _box(place: int, part: str, contents: str) -> Iterator[str]:
    top = _top(place)
    yield (
        f'  <rect class="box" x="{_LEFT}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="4"/>'
        f'<rect x="{_LEFT}" y="{top}" width="5" height="{_BOX_HEIGHT}" fill="{_COLOURS[place]}"/>'
    )
    yield f'  <text class="name" x="{_LEFT + 16}" y="{top + 23}">{escape(part)}</text>'
    yield f'  <text class="text" x="{_LEFT + 16}" y="{top + 43}">{escape(contents)}</text>'


def _lane(place: int, targets: list[int]) -> Iterator[str]:
    """The lane of one part: out of its box, down, and an arrow into each target."""
    if not targets:
        return
    colour, edge = _COLOURS[place], _LEFT + _BOX_WIDTH
    lane = edge + 16 + _LANE * (len(PARTS) - 1 - place)
    start = _top(place) + _BOX_HEIGHT - _ENTRY
    last = _entry(max(targets), place)
    yield f'  <path class="line" stroke="{colour}" d="M{edge} {start} H{lane} V{last}"/>'
    for target in targets:
        at = _entry(target, place)
        yield (
            f'  <path class="line" stroke="{colour}" d="M{lane} {at} H{edge + 6}"/>'
            f'<path fill="{colour}" d="M{edge} {at} l7 -2.8 v5.6 z"/>'
        )


def _top(place: int) -> int:
    return _TOP + place * (_BOX_HEIGHT + _GAP)


def _entry(target: int, source: int) -> int:
    """The height at which the arrow of a source enters a target: one height for each source."""
    return _top(target) + _ENTRY * (source + 1)


if __name__ == "__main__":
    PICTURE.write_text(picture(arrows()), encoding="utf-8")
