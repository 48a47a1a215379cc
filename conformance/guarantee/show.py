"""Shows what brokers did in each cell of the guarantee matrix beside the model's verdict.

The formats are Markdown, JSON, and lines for a terminal.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mqproof.conformance.guarantee.on_simulated_brokers import Lived, keeps_acknowledged
from mqproof.spec.guarantee.matrix import FAULTS, Cell, Setup, columns, damage_columns
from mqproof.spec.guarantee.view import LETTERS, WORDS

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "guarantees.md"
BEGIN: Final = "<!-- Written by `mqproof matrix --on impl --record`. -->\n"
END: Final = "<!-- End of what it writes. -->\n"


def refreshed(text: str, lived: Sequence[Lived]) -> str:
    """Return the document's text with these tables between the marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{markdown(lived)}\n{END}{tail}"


def markdown(lived: Sequence[Lived]) -> str:
    """Return both tables: each table cell has the model's verdict and the brokers'."""
    return "\n".join(_markdown(lived)) + "\n"


def summary(lived: Sequence[Lived]) -> str:
    """Summarise how many cells were tested, and how."""
    keeping = [each for each in lived if keeps_acknowledged(each.expected)]
    kept = sum(each.runs for each in keeping)
    others = sum(each.runs for each in lived) - kept
    replays = sum(each.replayed is not None for each in lived)
    elsewhere = f"; {others:,} in the others" if others else ""
    return (
        f"{len(lived)} cells; {kept:,} runs in the {len(keeping)} that lose nothing acknowledged{elsewhere};"
        f" {replays} counterexamples replayed; {sum(bool(each.failure) for each in lived)} cells differ"
    )


def _markdown(lived: Sequence[Lived]) -> Iterator[str]:
    by_entry = {each.entry: each for each in lived}
    setups = list(dict.fromkeys(each.entry.setup for each in lived))
    single = [faults for faults in columns() if len(faults) == 1]
    pairs = [faults for faults in columns() if len(faults) == 2]
    yield f"{summary(lived)}."
    yield "A cell is *model : broker*."
    yield ""
    names = [f"{FAULTS.index(fault) + 1} {fault}" for (fault,) in single]
    yield from _table(setups, names, single, by_entry, _words)
    yield ""
    names = ["".join(str(FAULTS.index(fault) + 1) for fault in pair) for pair in pairs]
    yield from _table(setups, names, pairs, by_entry, _letters)
    if any(each.entry.faults in damage_columns() for each in lived):
        yield ""
        names = [
            f"{number} {damage}" for number, (damage,) in enumerate(damage_columns(), start=len(FAULTS) + 1)
        ]
        yield from _table(setups, names, damage_columns(), by_entry, _words)


def _table(
    setups: Iterable[Setup],
    names: Sequence[str],
    faults: Sequence[tuple[str, ...]],
    by_entry: Mapping[Cell, Lived],
    describe: Callable[[Lived], str],
) -> Iterator[str]:
    yield _line("flush", "replication", "producer", *names)
    yield "|" + "---|" * (3 + len(names))
    for setup in setups:
        entries = [by_entry.get(Cell(setup, each)) for each in faults]
        yield _line(
            setup.flush,
            setup.replication,
            setup.producer,
            *(describe(each) if each else "–" for each in entries),
        )


def _words(each: Lived) -> str:
    how = f"{each.runs} runs" if each.runs else "replayed"
    return f"{WORDS[each.expected]} : {WORDS[each.worst]}, {how}"


def _letters(each: Lived) -> str:
    return f"{LETTERS[each.expected]}:{LETTERS[each.worst]}"


def _line(*entries: str) -> str:
    return "| " + " | ".join(entries) + " |"


def as_json(lived: Sequence[Lived]) -> str:
    """Return every cell with both verdicts, as JSON."""
    entries = [
        {
            "flush": each.entry.setup.flush,
            "replication": each.entry.setup.replication,
            "producer": each.entry.setup.producer,
            "faults": list(each.entry.faults),
            "model": str(each.expected),
            "broker": str(each.worst),
            "runs": each.runs,
            "replayed": str(each.replayed.became) if each.replayed else None,
            "send_result": each.replayed.send_result if each.replayed else None,
            "failure": each.failure or None,
        }
        for each in lived
    ]
    return json.dumps({"schema": "mqproof.matrix-live/2", "cells": entries}, indent=1) + "\n"
