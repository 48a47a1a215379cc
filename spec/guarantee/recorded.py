"""The verdicts recorded in matrix.toml. A matrix that differs from them has changed its meaning."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mqproof.spec.guarantee.matrix import Cell, Outcome, Setup, Verdicts, columns, damage_columns

RECORDED_FILE: Final = Path(__file__).with_name("matrix.toml")

_HEAD: Final = """\
# The verdict of every cell, written by `mqproof matrix --record`. It fails if TLC decides differently.
# One row per setup. A row has first the cells of one fault: clean, process, os, power, disk, machine.
# Then follow the cells of each pair: clean and clean, clean and process, ... machine and machine.
# Last are the cells of a damaged disk: flip, lost.

"""


class RecordedError(ValueError):
    """matrix.toml does not have the expected form; the message names the row."""


def load(path: Path = RECORDED_FILE) -> dict[Cell, Outcome]:
    """Return the recorded verdicts.

    Raises:
        RecordedError: no such file, bad TOML, or a row with an unknown verdict or too few of them.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return {cell: outcome for name, row in table.items() for cell, outcome in _row(name, row)}
    except (OSError, ValueError) as error:
        raise RecordedError(f"{path}: {error}") from None


def render(verdicts: Verdicts) -> str:
    """Return the text of the file for these verdicts."""
    rows: dict[Setup, list[str]] = {}
    for cell, outcome in verdicts.items():
        rows.setdefault(cell.setup, []).append(str(outcome))
    lines = []
    for setup, outcomes in rows.items():
        name = f"{setup.flush} {setup.replication} {setup.producer}"
        end = len(columns())
        alone, pairs, damage = (" ".join(each) for each in (outcomes[:6], outcomes[6:end], outcomes[end:]))
        lines.append(f'["{name}"]\nalone = "{alone}"\npairs = """\\\n  {pairs}"""\ndamage = "{damage}"\n')
    return _HEAD + "\n".join(lines)


def changed(verdicts: Verdicts, recorded: Verdicts) -> Iterator[str]:
    """Yield a line for each cell whose verdict is not the recorded one."""
    for cell, outcome in verdicts.items():
        before = recorded.get(cell)
        if before is not outcome:
            yield f"{cell}: {outcome}, {before or 'nothing'} recorded"


def _row(name: str, row: dict[str, str]) -> Iterator[tuple[Cell, Outcome]]:
    flush, replication, producer = name.split()
    outcomes = f"{row['alone']} {row['pairs']} {row.get('damage', '')}".split()
    expected = (*columns(), *damage_columns())
    if len(outcomes) != len(expected):
        raise ValueError(f"[{name}]: {len(outcomes)} verdicts, {len(expected)} expected")
    for faults, outcome in zip(expected, outcomes, strict=True):
        yield Cell(Setup(flush, replication, producer), faults), Outcome(outcome)
