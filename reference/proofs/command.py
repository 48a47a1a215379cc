"""What `mqproof prove` can be asked for, by name."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from reference.proofs import flush
from reference.proofs.judge import facts, judge, judge_mutant
from reference.proofs.mutants import MUTANTS
from reference.proofs.proof import Proof
from report.model import Report, Result, Table

PROOFS: Final[dict[str, Proof]] = {proof.name: proof for proof in (flush.PROOF,)}


def names() -> tuple[str, ...]:
    return tuple(PROOFS)


def report(chosen: Sequence[str], mutants: bool, told: Callable[[str], None]) -> Report:
    """Everything that is chosen, proved; or its mutants, whose proofs must fail.

    Raises:
        KeyError: a name is that of no proof.
    """
    results: list[Result] = []
    tables: list[Table] = []
    known: dict[str, str] = {}
    for name in chosen or names():
        proof = PROOFS[name]
        known |= facts(proof)
        for found, shown in _mutants(proof, told) if mutants else [judge(proof, told)]:
            results += found
            tables += shown
    title = "mqproof prove --mutants: held means that the proof fails" if mutants else "mqproof prove"
    return Report(title, tuple(results), known, tuple(tables))


def _mutants(proof: Proof, told: Callable[[str], None]) -> Iterator[tuple[list[Result], list[Table]]]:
    for mutant in MUTANTS:
        if mutant.proof is proof:
            told(mutant.full_name)
            result, tables = judge_mutant(mutant)
            yield [result], tables
