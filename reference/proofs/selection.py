"""Selects by name what `mqproof prove` proves: a protocol's proof, or the contracts of a module."""

from collections.abc import Callable, Sequence
from typing import Final

from mqproof.reference.proofs import crosshair_check, election, flush, replication
from mqproof.reference.proofs.contracts import CONTRACTS
from mqproof.reference.proofs.judge import facts, judge, judge_mutant
from mqproof.reference.proofs.mutants import MUTANTS
from mqproof.reference.proofs.mutants.contracts import BUGS
from mqproof.reference.proofs.proof import Proof
from mqproof.report.model import Report, Result, Table

PROOFS: Final[dict[str, Proof]] = {
    proof.name: proof for proof in (flush.PROOF, replication.PROOF, *election.PROOFS)
}

_OnStage = Callable[[str], None]
_Found = tuple[list[Result], list[Table]]


def names() -> tuple[str, ...]:
    """Return the names of the proofs, then of the modules whose functions have contracts."""
    return (*PROOFS, *dict.fromkeys(contract.module_name for contract in CONTRACTS))


def report(chosen: Sequence[str], mutants: bool, on_stage: _OnStage) -> Report:
    """Return the report of the chosen proofs and contracts, or of their mutants, whose proofs must fail."""
    chosen = chosen or names()
    proofs = [PROOFS[name] for name in chosen if name in PROOFS]
    results: list[Result] = []
    tables: list[Table] = []
    for proof in proofs:
        found, shown = _proof_mutants(proof, on_stage) if mutants else judge(proof, on_stage)
        results += found
        tables += shown
    found, shown = _bugs(chosen, on_stage) if mutants else _contracts(chosen, on_stage)
    known = {fact: text for proof in proofs for fact, text in facts(proof).items()}
    if found:
        known["contracts, granted"] = "the arguments that each `pre:` in reference/proofs/contracts.py allows"
    title = "mqproof prove --mutants: held means that the proof fails" if mutants else "mqproof prove"
    return Report(title, (*results, *found), known, (*tables, *shown))


def _proof_mutants(proof: Proof, on_stage: _OnStage) -> _Found:
    results: list[Result] = []
    tables: list[Table] = []
    for mutant in MUTANTS:
        if mutant.proof is proof:
            on_stage(mutant.full_name)
            result, shown = judge_mutant(mutant)
            results.append(result)
            tables += shown
    return results, tables


def _contracts(chosen: Sequence[str], on_stage: _OnStage) -> _Found:
    found = []
    for contract in CONTRACTS:
        if contract.module_name in chosen:
            on_stage(f"{contract.name}: {contract.statement}")
            found.append(crosshair_check.judge_contract(contract))
    return _rows("contracts", crosshair_check.CONTRACT_COLUMNS, found)


def _bugs(chosen: Sequence[str], on_stage: _OnStage) -> _Found:
    found = []
    for bug in BUGS:
        if bug.contract.module_name in chosen:
            on_stage(f"{bug.contract.name} {bug.name}")
            found.append(crosshair_check.judge_bug(bug))
    return _rows("injected bugs", crosshair_check.BUG_COLUMNS, found)


def _rows(title: str, columns: tuple[str, ...], found: list[tuple[Result, tuple[str, ...]]]) -> _Found:
    rows = tuple(row for _, row in found)
    return [result for result, _ in found], [Table(title, columns, rows)] if rows else []
