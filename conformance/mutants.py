"""Judges the suite by what it catches: every planted defect must be noticed by the invariant named for it."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from conformance import replication
from conformance.history.judge import judge as judge_history
from conformance.history.workload import Workload
from conformance.planting import planted
from conformance.routing.suite import ROUTING
from conformance.suite import FLUSH, Suite, TargetFactory, examine, of_suite
from conformance.targets import IMPL, MUTANT, pair_mutants, workload, workload_mutants
from conformance.targets.mutants import MUTANTS, Mutant, MutantTarget
from conformance.targets.pair_life import live
from conformance.targets.routing import mutants as routing_mutants
from conformance.targets.routing.name_servers import targets
from report.model import Result, Verdict, Witness

LAYER: Final = "impl"
EXAMPLES_MAX: Final = 600

Progress = Callable[[str, int, int], None]
"""Told (mutant, examples so far, examples in all)."""


def names() -> tuple[str, ...]:
    """The mutants, in order."""
    return (*MUTANTS, *pair_mutants.MUTANTS, *routing_mutants.MUTANTS, *workload_mutants.MUTANTS)


def run(
    chosen: Sequence[str] = (),
    on_progress: Progress | None = None,
    *,
    seed: int = 0,
    examples_max: int = EXAMPLES_MAX,
) -> Iterator[Result]:
    """A result for each mutant, or each that is named, as soon as it is judged: HELD when caught, VIOLATED
    when it survived."""
    for name in chosen or names():
        if name in pair_mutants.MUTANTS:
            yield judge_pair(pair_mutants.MUTANTS[name], on_progress, seed, examples_max)
        elif name in workload_mutants.MUTANTS:
            yield judge_workload(workload_mutants.MUTANTS[name], on_progress, seed, examples_max)
        elif name in routing_mutants.MUTANTS:
            with targets(f"{MUTANT}{name}") as factory:
                yield judge(routing_mutants.MUTANTS[name], factory, ROUTING, on_progress, seed, examples_max)
        else:
            yield judge(
                MUTANTS[name], partial(MutantTarget, MUTANTS[name]), FLUSH, on_progress, seed, examples_max
            )


def judge_workload(mutant: Mutant, on_progress: Progress | None, seed: int, examples_max: int) -> Result:
    """Let clients of all kinds loose on it, one history after the other, until a rule of the mutant's
    invariant finds something."""

    def look(seed: int) -> tuple[Witness, ...]:
        witnesses: tuple[Witness, ...] = ()
        for judged in judge_history(workload.run(IMPL, Workload(messages=30, faults=1, seed=seed))):
            if judged.rule.invariant == mutant.breaks and judged.finding.verdict is Verdict.VIOLATED:
                witnesses = judged.finding.witnesses
        return witnesses

    return _until_noticed(mutant, look, on_progress, seed, examples_max)


def judge_pair(mutant: Mutant, on_progress: Progress | None, seed: int, examples_max: int) -> Result:
    """Let master and slave live, one life after the other, until the mutant's invariant notices it."""
    check = replication.CHECKERS[mutant.breaks]
    return _until_noticed(mutant, lambda seed: check(live(seed)).witnesses, on_progress, seed, examples_max)


def _until_noticed(
    mutant: Mutant,
    look: Callable[[int], tuple[Witness, ...]],
    on_progress: Progress | None,
    seed: int,
    examples_max: int,
) -> Result:
    """Look at one seed after the other, with the defect in place, until there is something to be seen."""
    begin = time.monotonic()
    witnesses: tuple[Witness, ...] = ()
    examples = 0
    with planted(mutant):
        while not witnesses and examples < examples_max:
            witnesses = look(seed + examples)
            examples += 1
            if on_progress:
                on_progress(mutant.name, examples, examples_max)
    return Result(
        id=mutant.breaks,
        name=mutant.name,
        layer=LAYER,
        verdict=Verdict.HELD if witnesses else Verdict.VIOLATED,
        counts={"examples": examples, "examples_max": examples_max},
        witnesses=witnesses or (Witness(mutant.defect),),
        detail=mutant.defect,
        replay=f"mqproof mutants --layer impl --name {mutant.name}",
        seconds=time.monotonic() - begin,
    )


def judge(
    mutant: Mutant,
    factory: TargetFactory,
    suite: Suite,
    on_progress: Progress | None,
    seed: int,
    examples_max: int,
) -> Result:
    """Examine one mutant by its suite until its invariant notices it."""

    def progress(done: int, most: int) -> None:
        if on_progress:
            on_progress(mutant.name, done, most)

    examination = examine(
        factory,
        examples_max,
        seed,
        progress,
        suite=suite,
        wanted=frozenset({mutant.breaks}),
        shrink=False,
    )
    caught = examination.failures.get(mutant.breaks)
    return Result(
        id=mutant.breaks,
        name=mutant.name,
        layer=LAYER,
        verdict=Verdict.HELD if caught else Verdict.VIOLATED,
        counts={"examples": examination.examples, "examples_max": examples_max},
        witnesses=caught.finding.witnesses if caught else (Witness(mutant.defect),),
        detail=mutant.defect,
        replay=f"mqproof conform --target mutant:{mutant.name}{of_suite(suite)} --seed {seed}"
        f" --examples {examples_max}",
        seconds=examination.seconds,
    )
