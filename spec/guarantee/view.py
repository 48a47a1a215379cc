"""The content of the matrix for every output format: rows, columns, claims, numbered differences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mqproof.spec.guarantee.claims import Claim, Claims, Compared, Difference
from mqproof.spec.guarantee.matrix import (
    DAMAGE,
    FAULTS,
    PRODUCER,
    Cell,
    Outcome,
    Setup,
    Verdicts,
    columns,
    damage_columns,
)
from mqproof.spec.guarantee.picture import FAULT_NAMES

WORDS: Final = {
    Outcome.SAFE: "safe",
    Outcome.ERROR: "error",
    Outcome.SILENT: "silent",
    Outcome.SLAVE: "slave",
    Outcome.GONE: "LOST",
    Outcome.NEVER: "–",
}
LETTERS: Final = {
    Outcome.SAFE: "✓",
    Outcome.ERROR: "e",
    Outcome.SILENT: "s",
    Outcome.SLAVE: "◐",
    Outcome.GONE: "✗",
    Outcome.NEVER: "–",
}
LEGEND: Final = {
    Outcome.SAFE: "no message is lost",
    Outcome.ERROR: "a message may be lost, and its sender receives an error",
    Outcome.SILENT: "a message may be lost without an error; it was not answered with SEND_OK",
    Outcome.SLAVE: "SEND_OK, but consumers may not get the message: only the slave still has it",
    Outcome.GONE: "SEND_OK, but no node has the message any more",
    Outcome.NEVER: "cannot happen: the only machine is lost once",
}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    """The book's number of the case, or both numbers of a pair."""
    fault: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownCell:
    cell: Cell
    outcome: Outcome
    differences: tuple[int, ...]
    """Numbers of the differences that the cell belongs to."""
    picture: str
    """The path of the drawing of its counterexample; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Row:
    setup: Setup
    first: bool
    """Whether this row is the first one of its flush mode and replication."""
    cells: tuple[ShownCell, ...]
    book: str
    """The cases in which nothing is lost according to the book."""


@dataclass(frozen=True, slots=True)
class ShownClaim:
    source: str
    statement: str
    cells: int
    agree: int
    differences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownDifference:
    number: int
    title: str
    outcome: Outcome
    explanation: str
    cells: tuple[str, ...]
    example: str
    picture: str


@dataclass(frozen=True, slots=True)
class View:
    single_columns: tuple[Column, ...]
    singles: tuple[Row, ...]
    double_columns: tuple[Column, ...]
    doubles: tuple[Row, ...]
    damage_columns: tuple[Column, ...]
    damaged: tuple[Row, ...]
    """Empty if no cell of a damaged disk was decided."""
    claims: tuple[ShownClaim, ...]
    differences: tuple[ShownDifference, ...]
    states: int
    """The number of states that TLC visited; 0 if TLC was not run."""


def build(
    verdicts: Verdicts,
    claims: Claims,
    compared: Iterable[Compared],
    pictures: Mapping[Cell, str],
    *,
    fault: str | None = None,
    states: int = 0,
) -> View:
    """Return the view of these verdicts; with `fault`, only of the columns that contain it."""
    compared = [entry for entry in compared if fault is None or fault in entry.cell.faults]
    needed = {entry.difference.name for entry in compared if entry.difference}
    shown = [difference for difference in claims.difference if difference.name in needed]
    numbers = {difference.name: number for number, difference in enumerate(shown, start=1)}
    marks: dict[Cell, tuple[int, ...]] = {}
    for entry in compared:
        if entry.difference:
            known = {*marks.get(entry.cell, ()), numbers[entry.difference.name]}
            marks[entry.cell] = tuple(sorted(known))
    chosen = [faults for faults in columns() if fault is None or fault in faults]
    alone = [faults for faults in chosen if len(faults) == 1]
    pairs = [faults for faults in chosen if len(faults) == 2]
    decided = {cell.faults for cell in verdicts}
    damage = [faults for faults in damage_columns() if faults in decided and fault in (None, *faults)]

    def rows(which: Iterable[tuple[str, ...]]) -> tuple[Row, ...]:
        setups = dict.fromkeys(cell.setup for cell in verdicts)
        return tuple(
            Row(
                setup,
                setup.producer == PRODUCER[0],
                tuple(
                    ShownCell(cell, verdicts[cell], marks.get(cell, ()), pictures.get(cell, ""))
                    for cell in (Cell(setup, faults) for faults in which)
                ),
                _book(setup, claims.claim),
            )
            for setup in setups
        )

    return View(
        tuple(map(_column, alone)),
        rows(alone),
        tuple(map(_column, pairs)),
        rows(pairs),
        tuple(map(_column, damage)),
        rows(damage) if damage else (),
        tuple(_claim(claim, compared, numbers) for claim in claims.claim),
        tuple(_difference(difference, numbers, compared, pictures) for difference in shown),
        states,
    )


def _column(faults: tuple[str, ...]) -> Column:
    name = "".join(str((*FAULTS, *DAMAGE).index(fault) + 1) for fault in faults)
    return Column(name, " and ".join(faults), ", ".join(FAULT_NAMES[fault] for fault in faults))


def _book(setup: Setup, claims: Iterable[Claim]) -> str:
    """Return the numbers of the cases that some claim calls safe, or a dash."""
    safe = [
        str(number)
        for number, fault in enumerate(FAULTS, start=1)
        if any(claim.covers(Cell(setup, (fault,))) and not claim.lost for claim in claims)
    ]
    return " ".join(safe) or "–"


def _claim(claim: Claim, compared: Iterable[Compared], numbers: Mapping[str, int]) -> ShownClaim:
    about = [entry for entry in compared if entry.claim is claim]
    differences = {numbers[entry.difference.name] for entry in about if entry.difference}
    agree = sum(entry.difference is None for entry in about)
    return ShownClaim(claim.source, claim.statement, len(about), agree, tuple(sorted(differences)))


def _difference(
    difference: Difference,
    numbers: Mapping[str, int],
    compared: Iterable[Compared],
    pictures: Mapping[Cell, str],
) -> ShownDifference:
    cells = dict.fromkeys(str(entry.cell) for entry in compared if entry.difference is difference)
    return ShownDifference(
        number=numbers[difference.name],
        title=difference.title,
        outcome=difference.verdict,
        explanation=difference.explanation,
        cells=tuple(cells),
        example=str(difference.example_cell),
        picture=pictures.get(difference.example_cell, ""),
    )
