"""Has TLC decide every cell of the guarantee matrix in one run, with a counterexample for each that fails.

GuaranteeCells.tla defines the cells and prints the first path to each outcome of each cell. TLC searches
breadth first, so that path is a shortest one. An outcome that TLC has not printed after visiting every state
cannot happen.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations_with_replacement, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mqproof.spec.tlc import output, values
from mqproof.spec.tlc.config import Config, parse
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.run import Job, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace import Trace

FLUSH: Final = ("ASYNC_FLUSH", "SYNC_FLUSH")
REPLICATION: Final = ("none", "ASYNC_MASTER", "SYNC_MASTER_5X", "SYNC_MASTER")
PRODUCER: Final = ("sync", "async", "oneway")
FAULTS: Final = ("clean", "process", "os", "power", "disk", "machine")
"""The book's six cases, in its order."""
DAMAGE: Final = ("flip", "lost")
"""A record that was durable is altered, or its write never reached the disk."""

_TLA: Final = Path(__file__).parents[1] / "tla"
_MODULE: Final = "GuaranteeCells"
_DAMAGE_MODULE: Final = "GuaranteeDamage"
_CELL: Final = re.compile(r'^<<\s*"cell",.*?>>$', re.MULTILINE | re.DOTALL)  # TLC folds long lines
_CONSTANTS: Final = {"flush": "FlushModes", "replication": "ReplicationModes", "producer": "ProducerModes"}


class Outcome(StrEnum):
    """The worst outcome for a message, ordered from good to bad."""

    NEVER = "never"  # the cell has no behaviour: the only machine cannot be lost twice
    SAFE = "safe"
    ERROR = "error"  # lost, and the sender received an error
    SILENT = "silent"  # lost without an error: another status than SEND_OK, or oneway
    SLAVE = "slave"  # answered SEND_OK; consumers do not get it, but the slave still has it
    GONE = "gone"  # answered SEND_OK, and no node has it

    @property
    def badness(self) -> int:
        return tuple(Outcome).index(self)


@dataclass(frozen=True, slots=True, order=True)
class Setup:
    """The configuration of the brokers and the producer: one row."""

    flush: str
    replication: str
    producer: str


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    setup: Setup
    faults: tuple[str, ...]
    """One or two faults, in the book's order; or one damage."""

    def __str__(self) -> str:
        setup = self.setup
        return f"{setup.flush}, {setup.replication}, {setup.producer}: {' and '.join(self.faults)}"


Verdicts = Mapping[Cell, Outcome]


@dataclass(frozen=True, slots=True)
class Matrix:
    verdicts: Verdicts
    counterexamples: Mapping[Cell, Trace]
    """The path to the outcome of each cell that is not safe."""
    states: int
    seconds: float


def setups(chosen: Mapping[str, str] = MappingProxyType({})) -> tuple[Setup, ...]:
    """Return the rows in order, or those with the chosen flush, replication or producer."""
    tables = {"flush": FLUSH, "replication": REPLICATION, "producer": PRODUCER}
    picked = [(chosen[name],) if name in chosen else table for name, table in tables.items()]
    return tuple(Setup(*modes) for modes in product(*picked))


def columns() -> tuple[tuple[str, ...], ...]:
    """Return each fault alone, then each pair."""
    return (*((fault,) for fault in FAULTS), *combinations_with_replacement(FAULTS, 2))


def damage_columns() -> tuple[tuple[str, ...], ...]:
    """Return each damage alone."""
    return tuple((damage,) for damage in DAMAGE)


def decide(chosen: Mapping[str, str] = MappingProxyType({}), toolbox: Toolbox | None = None) -> Matrix:
    """Return the matrix, or its rows with the chosen flush, replication or producer.

    Raises:
        TlcError: TLC gave no verdict, or did not visit every state.
    """
    return _decided(_MODULE, columns(), chosen, toolbox)


def decide_damage(chosen: Mapping[str, str] = MappingProxyType({}), toolbox: Toolbox | None = None) -> Matrix:
    """Return the columns of a damaged disk. Raises as `decide`."""
    return _decided(_DAMAGE_MODULE, damage_columns(), chosen, toolbox)


def joined(first: Matrix, second: Matrix) -> Matrix:
    """Return one matrix with the cells of both."""
    return Matrix(
        {**first.verdicts, **second.verdicts},
        {**first.counterexamples, **second.counterexamples},
        first.states + second.states,
        first.seconds + second.seconds,
    )


def _decided(
    module: str, faults: tuple[tuple[str, ...], ...], chosen: Mapping[str, str], toolbox: Toolbox | None
) -> Matrix:
    job = Job(module, _config(module, chosen).text(), (_TLA,), keep_going=True)
    outcome = run(job, toolbox)
    read = output.read(outcome.text)
    if not read.of(output.SUCCESS):
        raise TlcError(Reason.CRASH, "TLC: it ended before it had seen every state", outcome.text)
    verdicts = dict.fromkeys((Cell(s, c) for s in setups(chosen) for c in faults), Outcome.NEVER)
    counterexamples: dict[Cell, Trace] = {}
    traces = iter(read.traces)
    for cell, found in _printed_cells(read.loose):
        trace = None if found is Outcome.SAFE else next(traces)
        if cell in verdicts and found.badness > verdicts[cell].badness:
            verdicts[cell] = found
            if trace is not None:
                counterexamples[cell] = trace
    return Matrix(verdicts, counterexamples, outcome.distinct, outcome.seconds)


def _config(module: str, chosen: Mapping[str, str]) -> Config:
    asked = parse((_TLA / f"{module}.cfg").read_text(encoding="utf-8"))
    lines = [line.strip() for body in asked.of("CONSTANT") for line in body.splitlines()]
    for name, mode in chosen.items():
        constant = _CONSTANTS[name]
        lines = [f'{constant} = {{"{mode}"}}' if line.startswith(constant) else line for line in lines]
    return asked.without("CONSTANT").with_section("CONSTANT", "\n    ".join(lines))


def _printed_cells(printed: str) -> Iterator[tuple[Cell, Outcome]]:
    """Yield the cells that the module printed, in its order.

    Those that are not safe are in the order of the counterexamples.
    """
    for line in _CELL.findall(printed):
        parsed: Any = values.parse(line)
        _, flush, replication, producer, kinds, count, outcome = parsed
        faults = sorted(kinds, key=(*FAULTS, *DAMAGE).index)
        pair = (*faults, *faults[: count - len(faults)])
        yield Cell(Setup(flush, replication, producer), pair), Outcome(outcome)
