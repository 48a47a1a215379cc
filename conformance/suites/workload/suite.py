"""The workload suite of `mqproof conform`: clients of all kinds at once, while faults are injected.

Every rule judges their observations. An example is one send of each producer. There are two faults, and one
more for every ten examples; no kind of fault comes again before each kind has occurred.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mqproof.conformance.engine.directed_scenarios import PairCoverage
from mqproof.conformance.engine.fault_kinds import KINDS
from mqproof.conformance.engine.run_options import Part, RunOptions
from mqproof.conformance.engine.suite_results import with_time
from mqproof.conformance.engine.targets import IMPL
from mqproof.conformance.history.judge import results
from mqproof.conformance.history.lines import Line
from mqproof.conformance.history.pairing import record
from mqproof.conformance.suites.workload.checkers import rules
from mqproof.conformance.suites.workload.dimensions import DIMENSIONS, scripts
from mqproof.conformance.suites.workload.session import history
from mqproof.conformance.suites.workload.target import Play
from mqproof.report.model import Result, Verdict

NAME: Final = "workload"


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return the selected rules, as results that are not tested."""
    return tuple(Result(rule.id, rule.name, NAME, Verdict.NOT_TESTED) for rule in rules(options))


def lines(options: RunOptions) -> Iterator[str]:
    for rule in rules(options):
        yield f"{rule.id}  {NAME}  {rule.name}, of {rule.invariant}"


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run one workload with `play` and judge its history.

    Raises:
        RunOptionsError, UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    lines = history(options, progress, play)
    seen = record(lines)
    replay = options.replay(NAME, "--seed", str(options.seed), "--examples", str(options.examples))
    wanted = {rule.id for rule in rules(options)}
    found = tuple(each for each in results(seen, NAME, replay) if each.id in wanted)
    pairs = _pairs(lines) if options.target == IMPL else None
    looked_at = {
        "examples": options.examples,
        "operations": seen.operations,
        **(pairs.evidence() if pairs else {}),
    }
    tables = pairs.tables() if pairs else ()
    kinds = (KINDS.get(fault.value.kind) for fault in seen.faults)
    faults = Counter(kind for kind in kinds if kind)
    seconds = time.perf_counter() - began
    return Part(NAME, with_time(found, seconds), looked_at, seconds, tables, faults=faults)


def _pairs(lines: Iterable[Line]) -> PairCoverage:
    """Return the pairs of a fault and a request that the workload met."""
    met = frozenset(pair for script in scripts(lines) for pair in DIMENSIONS.shown_in(script))
    return PairCoverage(NAME, DIMENSIONS.pairs(()), met, tuple(DIMENSIONS.excluded(())))
