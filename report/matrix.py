"""The verdict matrix: one row per invariant, one column per layer, one verdict in each cell."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mqproof.report.model import Result, Verdict, overall

SYMBOLS: Final = {Verdict.HELD: "✓", Verdict.VIOLATED: "✗", Verdict.UNKNOWN: "?", Verdict.NOT_TESTED: "–"}
"""Each verdict is shown as a symbol and a word, so that it can be read without colour."""
_URGENT: Final = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.NOT_TESTED)
TITLED_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    name: str
    cells: tuple[Verdict | None, ...]
    """One verdict per layer, in the order of Matrix.layers; None if that layer has no result."""


@dataclass(frozen=True, slots=True)
class Matrix:
    layers: tuple[str, ...]
    rows: tuple[Row, ...]


def matrix(results: Iterable[Result]) -> Matrix:
    """Return the matrix of these results; invariants and layers are in order of first appearance."""
    cells: dict[tuple[str, str], dict[str, list[Result]]] = {}
    layers: dict[str, None] = {}
    for result in results:
        layers.setdefault(result.layer)
        cells.setdefault((result.id, result.name), {}).setdefault(result.layer, []).append(result)
    rows = (
        Row(row_id, name, tuple(cell_verdict(by_layer.get(layer, [])) for layer in layers))
        for (row_id, name), by_layer in cells.items()
    )
    return Matrix(tuple(layers), tuple(rows))


def cell_verdict(results: list[Result]) -> Verdict | None:
    """Return the verdict of one cell; None without results.

    It is NOT_TESTED if all results are, otherwise `overall` of them.
    """
    if not results:
        return None
    if all(result.verdict is Verdict.NOT_TESTED for result in results):
        return Verdict.NOT_TESTED
    return overall(results)


def label(verdict: Verdict | None) -> str:
    """Return symbol and word, e.g. "✓ held"; empty for no verdict."""
    return f"{SYMBOLS[verdict]} {verdict}" if verdict else ""


def unheld(results: Iterable[Result]) -> tuple[tuple[Result, ...], ...]:
    """Return groups of results that need an explanation, violations first.

    Results of one layer with the same detail and no evidence of their own form one group.
    """
    together: dict[tuple[object, ...], list[Result]] = {}
    for at, result in enumerate(results):
        if result.verdict is not Verdict.HELD:
            alone = () if result.detail and not (result.witnesses or result.replay) else (at,)
            key = (result.layer, result.verdict, result.detail, *alone)
            together.setdefault(key, []).append(result)
    return tuple(map(tuple, sorted(together.values(), key=lambda alike: _URGENT.index(alike[0].verdict))))


def titled(results: Sequence[Result]) -> str:
    """Return id and name of one result, or the first ids of several.

    If they share the id, their names follow it.
    """
    first, *more = results
    if not more:
        return f"{first.id} {first.name}"
    shared = all(result.id == first.id for result in more)
    several = ", ".join(result.name if shared else result.id for result in results[:TITLED_MAX])
    if len(results) > TITLED_MAX:
        several += f" and {len(results) - TITLED_MAX:,} more"
    return f"{first.id} {several}" if shared else several


def counts_text(result: Result) -> str:
    """Return the numbers of examined items, e.g. "1,200 states, 3 crashes"."""
    return ", ".join(f"{count:,} {what}" for what, count in result.counts.items())


def tally(results: Iterable[Result]) -> dict[Verdict, int]:
    """Return the number of results with each verdict; every verdict is present."""
    counts = dict.fromkeys(Verdict, 0)
    for result in results:
        counts[result.verdict] += 1
    return counts
