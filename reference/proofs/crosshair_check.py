"""Checks with CrossHair whether a contract can be broken, and tries all cases of a stated bound as well.

CrossHair runs the contract on symbolic values. "Confirmed" means that it covered every path, which is a proof
for the arguments that `pre:` allows. Otherwise it found nothing in its time, which proves nothing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from crosshair.core_and_libs import analyze_function, run_checkables
from crosshair.options import AnalysisKind, AnalysisOptionSet
from crosshair.statespace import MessageType

from mqproof.reference.proofs.contracts import Contract
from mqproof.reference.proofs.mutants.contracts import Bug
from mqproof.report.model import Result, Verdict, Witness

SECONDS_MAX: Final = 8.0
"""The time limit for a contract. CrossHair may take part of it again for its start."""


CONTRACT_COLUMNS: Final = ("contract", "CrossHair", "also tried", "seconds")
BUG_COLUMNS: Final = ("injected bug", "contract", "what CrossHair found")


class Finding(StrEnum):
    CONFIRMED = "confirmed on every path"
    BROKEN = "counterexample"
    NOTHING = "nothing found"


@dataclass(frozen=True, slots=True)
class Analysis:
    finding: Finding
    example: str
    seconds: float


def analyse(contract: Contract, seconds_max: float = SECONDS_MAX) -> Analysis:
    """Return CrossHair's result for a contract."""
    started = time.perf_counter()
    options = AnalysisOptionSet(
        per_condition_timeout=seconds_max, report_all=True, analysis_kind=[AnalysisKind.PEP316]
    )
    messages = run_checkables(analyze_function(contract.holds, options))
    seconds = time.perf_counter() - started
    bad = [m for m in messages if m.state > MessageType.PRE_UNSAT]
    if bad:
        return Analysis(Finding.BROKEN, bad[0].message, seconds)
    confirmed = [m.state for m in messages] == [MessageType.CONFIRMED]
    return Analysis(Finding.CONFIRMED if confirmed else Finding.NOTHING, "", seconds)


def judge_contract(contract: Contract, seconds_max: float = SECONDS_MAX) -> tuple[Result, tuple[str, ...]]:
    """Judge a contract: HELD if CrossHair confirms it or it is true in all cases of the bound.

    The row states which of the two applies.
    """
    analysis = analyse(contract, seconds_max)
    tried, broken = 0, None
    for case in contract.cases():
        tried += 1
        if not contract.holds(*case):
            broken = f"false for {', '.join(map(repr, case))}"
            break
    example = analysis.example or broken
    result = Result(
        id="CONTRACT",
        name=contract.name,
        layer="reference",
        verdict=Verdict.VIOLATED if example else Verdict.HELD,
        counts={"cases": tried},
        witnesses=(Witness(example),) if example else (),
        detail=f"{contract.statement}: false" if example else "",
        replay=f"mqproof prove {contract.module_name}",
        seconds=analysis.seconds,
    )
    enumerated = f"{tried} cases: {contract.bound}"
    return result, (contract.statement, str(analysis.finding), enumerated, f"{analysis.seconds:.1f}")


@contextmanager
def injected(bug: Bug) -> Iterator[None]:
    """Replace the function by the bug within the block."""
    module, name = bug.contract.module, bug.contract.function
    sound = getattr(module, name)
    setattr(module, name, bug.function)
    try:
        yield
    finally:
        setattr(module, name, sound)


def judge_bug(bug: Bug, seconds_max: float = SECONDS_MAX) -> tuple[Result, tuple[str, ...]]:
    """Judge an injected bug: HELD if CrossHair found it."""
    with injected(bug):
        analysis = analyse(bug.contract, seconds_max)
    found = analysis.finding is Finding.BROKEN
    result = Result(
        id="CONTRACT",
        name=f"{bug.contract.name} {bug.name}",
        layer="reference",
        verdict=Verdict.HELD if found else Verdict.VIOLATED,
        counts={"counterexamples": 1} if found else {},
        witnesses=(Witness(analysis.example),) if found else (),
        detail=f"{bug.contract.statement}: {analysis.example if found else 'CrossHair finds nothing'}",
        replay=f"mqproof prove {bug.contract.module_name} --mutants",
        seconds=analysis.seconds,
    )
    return result, (result.name, bug.contract.statement, analysis.example or str(analysis.finding))
