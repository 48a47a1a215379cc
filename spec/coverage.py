"""The matrix of invariants and layers, as a table and as JSON."""

from collections.abc import Iterable
from typing import Any, Final

from mqproof.report.model import Table
from mqproof.spec.catalogue import LAYERS, Invariant

SCHEMA_VERSION: Final = 1
"""`schema` of the JSON document; grows when a key changes its meaning."""


def table(invariants: Iterable[Invariant]) -> Table:
    """A row an invariant; a cell names the check and counts its mutants, or is n/a or open."""
    rows = tuple(
        (f"{invariant.id} {invariant.name}", *(_cell(invariant, layer) for layer in LAYERS))
        for invariant in invariants
    )
    return Table("What checks what", ("invariant", *LAYERS), rows)


def reasons(invariants: Iterable[Invariant]) -> tuple[str, ...]:
    """A line for each layer that cannot check an invariant, with the reason."""
    return tuple(
        f"n/a {invariant.id} {layer}: {why}"
        for invariant in invariants
        for layer, why in invariant.why.items()
        if layer not in invariant.checks
    )


def totals(invariants: Iterable[Invariant]) -> dict[str, int]:
    """How many cells are checked, n/a and open, and how many checks no mutant has shown able to fail."""
    cells = [(invariant, layer) for invariant in invariants for layer in LAYERS]
    states = [invariant.cell(layer) for invariant, layer in cells]
    counted = {state: states.count(state) for state in ("checked", "n/a", "open")}
    unproven = [
        1 for invariant, layer in cells if layer in invariant.checks and not invariant.mutants.get(layer)
    ]
    return {**counted, "checked without a mutant": len(unproven)}


def as_json(invariants: tuple[Invariant, ...]) -> dict[str, Any]:
    """The matrix with stable keys: schema, layers, totals, invariants[].cells[layer].state|by|why|mutants."""
    return {
        "schema": SCHEMA_VERSION,
        "layers": list(LAYERS),
        "totals": totals(invariants),
        "invariants": [
            {
                "id": invariant.id,
                "name": invariant.name,
                "kind": invariant.kind,
                "statement": invariant.statement,
                "cells": {layer: _entry(invariant, layer) for layer in LAYERS},
            }
            for invariant in invariants
        ],
    }


def _cell(invariant: Invariant, layer: str) -> str:
    state = invariant.cell(layer)
    if state == "checked":
        mutants = len(invariant.mutants.get(layer, ()))
        return f"{', '.join(invariant.checks[layer])} ({mutants} mutant{'' if mutants == 1 else 's'})"
    return state


def _entry(invariant: Invariant, layer: str) -> dict[str, Any]:
    return {
        "state": invariant.cell(layer),
        "by": ", ".join(invariant.checks[layer]) if layer in invariant.checks else None,
        "why": invariant.why.get(layer),
        "mutants": list(invariant.mutants.get(layer, ())),
    }
