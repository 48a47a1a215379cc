"""The consumers suite of `mqproof conform`: our push consumers as the members of a group, on our broker.

They are judged by the same model and invariants as the members that the delivery suite simulates. An example
is a member that joins or leaves; each group has CHANGES of them and a seed of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.finding import SPEC_1, Finding
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.stepped_run import Stepped
from mqproof.conformance.engine.suite_results import scripted, with_time
from mqproof.conformance.engine.targets import IMPL, UnknownTargetError
from mqproof.conformance.suites.delivery.checkers import CHECKERS
from mqproof.conformance.suites.delivery.oracle import State
from mqproof.conformance.suites.delivery.steps import Operation
from mqproof.report.model import Result, Verdict
from mqproof.spec.catalogue import catalogue

NAME: Final = "consumers"
Play = Callable[[int], Stepped[State, Operation]]
"""Runs one group whose members join and leave as the seed determines."""
CHANGES: Final = 8
"""The number of members of one group that join or leave."""


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return the selected invariants, as results that are not tested."""
    return tuple(
        Result(id_, catalogue()[id_].name, NAME, Verdict.NOT_TESTED)
        for id_ in options.chosen((*CHECKERS, SPEC_1))
    )


def lines(options: RunOptions) -> Iterator[str]:
    for each in listed(options):
        yield f"{each.id}  {NAME}  {catalogue()[each.id].statement}"


def run(
    options: RunOptions,
    progress: Callable[[int, int], None],
    play: Callable[[int], Stepped[State, Operation]],
) -> Part:
    """Run and judge one group per seed with `play`.

    Raises UnknownTargetError: the target is not our own broker.
    """
    if options.target != IMPL:
        raise UnknownTargetError(f"{options.target!r}: the suite examines only our own consumers, on {IMPL}")
    began = time.perf_counter()
    found: dict[str, list[Finding]] = {each.id: [] for each in listed(options)}
    scripts: dict[str, tuple[int, list[str]]] = {}
    operations, faults = 0, Counter[FaultKind]()
    groups = -(-options.examples // CHANGES)
    for number in range(groups):
        group = play(options.seed + number)
        operations += len(group.run.operations)
        faults.update(group.faults())
        for id_, finding in group.findings().items():
            if id_ in found:
                found[id_].append(finding)
                if finding.verdict is Verdict.VIOLATED:
                    scripts.setdefault(id_, (options.seed + number, group.script()))
        progress(min((number + 1) * CHANGES, options.examples), options.examples)
    seconds = time.perf_counter() - began
    results = with_time((_result(options, id_, found[id_], scripts.get(id_)) for id_ in found), seconds)
    looked_at = {"examples": options.examples, "operations": operations}
    return Part(NAME, results, looked_at, seconds, faults=faults)


def _result(
    options: RunOptions, id_: str, found: Sequence[Finding], failed: tuple[int, list[str]] | None
) -> Result:
    counts = Counter({"groups": len(found)})
    for finding in found:
        counts.update(finding.counts)
    if failed is not None:
        seed, script = failed
        first = next(finding for finding in found if finding.verdict is Verdict.VIOLATED)
        replay = options.replay(NAME, "--seed", str(seed), "--examples", "1")
        witnesses = (*first.witnesses, scripted(script))
        return Result(
            id_, catalogue()[id_].name, NAME, Verdict.VIOLATED, dict(counts), witnesses,
            f"violated in the run with seed {seed}", replay,
        )  # fmt: skip
    held = any(finding.verdict is Verdict.HELD for finding in found)
    verdict = Verdict.HELD if held else Verdict.UNKNOWN
    return Result(id_, catalogue()[id_].name, NAME, verdict, dict(counts))
