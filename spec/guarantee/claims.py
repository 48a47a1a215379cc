"""Compares the matrix with the book's claims (claims.toml): each difference must be explained."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.spec.guarantee.matrix import FAULTS, FLUSH, PRODUCER, REPLICATION, Cell, Outcome, Setup, Verdicts

CLAIMS_FILE: Final = Path(__file__).with_name("claims.toml")


class ClaimsError(ValueError):
    """claims.toml lacks the expected form or does not fit the matrix; the message names the entry."""


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Selects the one-fault cells that an entry is about."""

    name: str
    flush: tuple[str, ...] = FLUSH
    replication: tuple[str, ...] = REPLICATION
    producer: tuple[str, ...] = PRODUCER
    faults: tuple[str, ...] = FAULTS

    def covers(self, cell: Cell) -> bool:
        setup = cell.setup
        return (
            len(cell.faults) == 1
            and cell.faults[0] in self.faults
            and setup.flush in self.flush
            and setup.replication in self.replication
            and setup.producer in self.producer
        )


class Claim(_About, frozen=True):
    """A statement of the book."""

    source: str
    statement: str
    lost: bool
    """Whether messages may be lost according to the book."""


class Difference(_About, frozen=True):
    """Cells for which TLC's verdict differs from the book, and the explanation."""

    title: str
    claims: tuple[str, ...]
    verdict: Outcome
    example: tuple[str, str, str, str]
    """flush, replication, producer and fault of the cell whose counterexample shows it."""
    explanation: str

    @property
    def example_cell(self) -> Cell:
        *setup, fault = self.example
        return Cell(Setup(*setup), (fault,))


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    claim: tuple[Claim, ...]
    difference: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A cell about which the book makes a claim."""

    cell: Cell
    claim: Claim
    outcome: Outcome
    difference: Difference | None
    """The explained difference between TLC and the book; None if they agree."""


def load(path: Path = CLAIMS_FILE) -> Claims:
    """Return the claims and the explained differences.

    Raises:
        ClaimsError: no such file, bad TOML, an unknown field, claim or mode.
    """
    try:
        claims = msgspec.toml.decode(path.read_bytes(), type=Claims)
    except (OSError, msgspec.MsgspecError) as error:
        raise ClaimsError(f"{path}: {error}") from None
    known = {claim.name for claim in claims.claim}
    modes = {*FLUSH, *REPLICATION, *PRODUCER, *FAULTS}
    for entry in (*claims.claim, *claims.difference):
        named = [*entry.flush, *entry.replication, *entry.producer, *entry.faults]
        if unknown := [mode for mode in named if mode not in modes]:
            raise ClaimsError(f"{path}: {entry.name}: no mode or fault {unknown[0]!r}")
    for difference in claims.difference:
        if unknown := [name for name in difference.claims if name not in known]:
            raise ClaimsError(f"{path}: {difference.name}: no claim {unknown[0]!r}")
    return claims


def compare(verdicts: Verdicts, claims: Claims) -> tuple[Compared, ...]:
    """Return every cell with every claim about it.

    They agree if both say that messages may be lost, or both not.

    Raises:
        ClaimsError: a difference without explanation, or with two; the message names the cell.
    """
    return tuple(_compared(verdicts, claims))


def stale(compared: Iterable[Compared], claims: Claims) -> tuple[str, ...]:
    """Return the explanations that no cell of the whole matrix needs any more."""
    needed = {entry.difference.name for entry in compared if entry.difference}
    return tuple(difference.name for difference in claims.difference if difference.name not in needed)


def _compared(verdicts: Verdicts, claims: Claims) -> Iterator[Compared]:
    for cell, outcome in verdicts.items():
        for claim in claims.claim:
            if not claim.covers(cell):
                continue
            if claim.lost == (outcome is not Outcome.SAFE):
                yield Compared(cell, claim, outcome, None)
                continue
            fitting = [
                difference
                for difference in claims.difference
                if claim.name in difference.claims
                and difference.verdict is outcome
                and difference.covers(cell)
            ]
            if len(fitting) != 1:
                number = len(fitting) or "no"
                raise ClaimsError(
                    f"{cell}: TLC says {outcome}, the book's {claim.name} differs; {number} explanation in"
                    f" {CLAIMS_FILE.name}, one expected"
                )
            yield Compared(cell, claim, outcome, fitting[0])
