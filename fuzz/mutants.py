"""Judges the fuzz targets by their findings: each injected defect must be found by the invariant it violates.

`mqproof mutants --layer fuzz` runs them. A result is HELD if the target found the defect, and VIOLATED if the
mutant survived.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from mqproof.conformance.hosts import sandbox
from mqproof.conformance.mutants.replacement import injected
from mqproof.fuzz import targets
from mqproof.fuzz.defects import damage, dledger, filter_servers, ha, remoting, store, tracing
from mqproof.fuzz.defects.defect import Mutant
from mqproof.fuzz.engine.search import Engine
from mqproof.fuzz.engine.verdict import catalogue_id
from mqproof.report.model import Result, Verdict, Witness

LAYER: Final = "fuzz"
EXECUTIONS_MAX: Final = 2000

MUTANTS: Final = {
    mutant.name: mutant
    for mutant in (
        *(*remoting.MUTANTS, *ha.MUTANTS, *store.MUTANTS, *damage.MUTANTS, *dledger.MUTANTS),
        *(*tracing.MUTANTS, *filter_servers.MUTANTS),
    )
}
"""The mutants by name."""


def names() -> tuple[str, ...]:
    """Return the names of the mutants, in order."""
    return tuple(MUTANTS)


def run(
    chosen: Sequence[str] = (), *, seed: int = 0, executions_max: int = EXECUTIONS_MAX
) -> Iterator[Result]:
    """Judge each mutant, or each chosen one, in turn."""
    for name in chosen or MUTANTS:
        yield judge(MUTANTS[name], seed=seed, executions_max=executions_max)


def judge(mutant: Mutant, *, seed: int = 0, executions_max: int = EXECUTIONS_MAX) -> Result:
    """Fuzz with the defect in place until its invariant reports it, if the target can run here."""
    if mutant.target == filter_servers.TARGET and not sandbox.is_installed():
        id_ = catalogue_id(mutant.breaks, mutant.target)
        return Result(id_, mutant.name, LAYER, Verdict.NOT_TESTED, detail=sandbox.MISSING)
    begin = time.monotonic()
    with injected(mutant):
        executions, message = _search(mutant, seed, executions_max)
    caught = f"caught by {mutant.breaks}" if message else f"survives {mutant.breaks}"
    return Result(
        id=catalogue_id(mutant.breaks, mutant.target),
        name=mutant.name,
        layer=LAYER,
        verdict=Verdict.HELD if message else Verdict.VIOLATED,
        counts={"executions": executions},
        witnesses=(Witness(message or f"not found: {mutant.defect}"),),
        detail=f"{caught}: {mutant.defect}",
        replay=f"mqproof mutants --layer {LAYER} --only {mutant.name}",
        seconds=time.monotonic() - begin,
    )


def _search(mutant: Mutant, seed: int, executions_max: int) -> tuple[int, str]:
    """Return the number of executions and the finding's message, which is empty if there is none."""
    engine = Engine(targets.load(mutant.target), str(seed))
    while engine.executions < executions_max:
        _, failure = engine.step()
        if failure is not None and failure.invariant == mutant.breaks:
            return engine.executions, failure.message
    return engine.executions, ""
