"""The matrix of invariants and layers, as text and as JSON."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mqproof.spec.catalogue import LAYERS, Invariant

SCHEMA_VERSION: Final = 1
"""`schema` of the JSON document; it is incremented when a key changes its meaning."""

_COLUMNS: Final = 80


def matrix(invariants: Sequence[Invariant], layers: Sequence[str] = LAYERS) -> tuple[str, ...]:
    """Return one line per invariant, with a mark for each layer.

    It fits 80 columns with the present names.
    """
    labels = [f"{invariant.id} {invariant.name}" for invariant in invariants]
    width = max(map(len, ["invariant", *labels]))
    lines = ["  ".join(["invariant".ljust(width), *layers])]
    for label, invariant in zip(labels, invariants, strict=True):
        marks = (_mark(invariant, layer).ljust(len(layer)) for layer in layers)
        lines.append("  ".join([label.ljust(width), *marks]).rstrip())
    return tuple(lines)


LEGEND: Final = (
    "✓ checked; a mutant shows that the check can fail   ~ checked, without a mutant",
    "– this layer cannot check it                        open: not checked yet",
    "Checks, mutants and reasons: mqproof coverage --details, or --id ID",
)
"""The meaning of the marks of `matrix`."""


def details(invariant: Invariant, layers: Sequence[str] = LAYERS) -> tuple[str, ...]:
    """Return the statement of an invariant, and for each layer the checks or why it has none."""
    lines = [f"{invariant.id} {invariant.name} ({invariant.kind})", *_wrapped(invariant.statement, "  ")]
    for layer in layers:
        start = f"  {layer:{max(map(len, LAYERS))}}  "
        state = invariant.cell(layer)
        if state == "checked":
            text = f"checked by {', '.join(invariant.checks[layer])}"
            mutants = ", ".join(invariant.mutants.get(layer, ())) or "none"
            lines += [*_wrapped(text, start), *_wrapped(f"mutants: {mutants}", " " * len(start))]
        else:
            lines += _wrapped(f"n/a: {invariant.why[layer]}" if state == "n/a" else state, start)
    return tuple(lines)


def totals(invariants: Iterable[Invariant], layers: Sequence[str] = LAYERS) -> dict[str, int]:
    """Return how many cells are checked, n/a and open, and how many checks have no mutant that they catch."""
    cells = [(invariant, layer) for invariant in invariants for layer in layers]
    states = [invariant.cell(layer) for invariant, layer in cells]
    counted = {state: states.count(state) for state in ("checked", "n/a", "open")}
    unproven = [
        1 for invariant, layer in cells if layer in invariant.checks and not invariant.mutants.get(layer)
    ]
    return {**counted, "checked without a mutant": len(unproven)}


def as_json(invariants: Sequence[Invariant], layers: Sequence[str] = LAYERS) -> dict[str, Any]:
    """Return the matrix with stable keys: schema, layers, totals,
    invariants[].cells[layer].state|by|why|mutants.
    """
    return {
        "schema": SCHEMA_VERSION,
        "layers": list(layers),
        "totals": totals(invariants, layers),
        "invariants": [
            {
                "id": invariant.id,
                "name": invariant.name,
                "kind": invariant.kind,
                "statement": invariant.statement,
                "cells": {layer: _entry(invariant, layer) for layer in layers},
            }
            for invariant in invariants
        ],
    }


def _mark(invariant: Invariant, layer: str) -> str:
    match invariant.cell(layer):
        case "checked":
            return "✓" if invariant.mutants.get(layer) else "~"
        case "n/a":
            return "–"
        case state:
            return state


def _wrapped(text: str, start: str) -> list[str]:
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entry(invariant: Invariant, layer: str) -> dict[str, Any]:
    return {
        "state": invariant.cell(layer),
        "by": ", ".join(invariant.checks[layer]) if layer in invariant.checks else None,
        "why": invariant.why.get(layer),
        "mutants": list(invariant.mutants.get(layer, ())),
    }
