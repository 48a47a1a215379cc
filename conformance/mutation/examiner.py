"""Judges one mutant by the suites that execute its line. `fork_server.py` does so in a process of its own.

Each suite runs with two examples or few cases first, then with the other cases, and then with a few more
examples, because these detect most mutants. Then each one runs with all of its examples. What has not run
when the processor time is nearly used up does not run.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mqproof.conformance.mutation import unit_tests

if TYPE_CHECKING:
    from mqproof.conformance.engine.run_options import Part


class Outcome(StrEnum):
    """What happened to a mutant."""

    VIOLATION = "violation"  # a suite reports a violated invariant, or a failed wire case
    BROKEN = "broken"  # a suite cannot drive the target: it does not start, or it fails in every example
    ENDLESS = "endless"  # one example used up the time of the process, which must be a violation
    SURVIVED = "survived"  # every suite that reaches the line holds, as far as it ran in the time
    UNREACHED = "unreached"  # no suite executes the line


DETECTED: Final = frozenset({Outcome.VIOLATION, Outcome.BROKEN})
FIRST_ROUNDS: Final = (2, 10)
"""The numbers of examples in the first rounds of a suite, after those that do not execute the line."""
FIRST_CASES: Final = 16
"""The number of cases in the first round of a suite whose cases can run alone: those that depend on the line
most."""
NEXT_CASES: Final = 48
"""The number of cases in each of the rounds that follow."""
SPARE_PART: Final = 0.3
"""The part of the processor time that is left for the example that runs when the rest is used up."""
CASE_SUITES: Final = frozenset({"wire", "inspections", "hostile"})
"""The suites whose cases can run alone."""
ALONE: Final = frozenset({"inspections"})
"""The suites whose cases need nothing in common, so that each one may run alone without more time."""
ONCE: Final = frozenset({"damage"})
"""The suites that neither draw examples nor run some of their cases."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A suite that executes the line of a mutant."""

    suite: str
    examples: int = 0
    """The number of examples before the first one that executes the line."""
    cases: tuple[str, ...] = ()
    """The cases in its first rounds, in their order; empty for all."""
    is_whole: bool = False
    """Whether these are all cases that execute the line."""

    @property
    def first_input(self) -> str:
        """The case that judges first, or the first example that executes the line."""
        if self.cases:
            return self.cases[0]
        return f"{self.suite} {'case' if self.suite in ONCE else 'example'} {self.examples + 1}"


@dataclass(frozen=True, slots=True)
class Task:
    """One mutant, and the suites that judge it in this order."""

    module: str
    """The module that is mutated; empty for the original code and for a patch."""
    number: int
    judges: tuple[Judge, ...]
    examples: int
    seed: int
    cpu_s: int
    """The process is ended after this much processor time."""
    is_imported: bool = False
    """Whether the change needs a new import: the line runs when its module is imported."""
    patched: Mapping[str, str] = field(default_factory=dict)
    """The changed source text of each module of a patch, by its dotted name."""


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    suite: str = ""
    """The suite that detected the mutant."""
    by: str = ""
    """The violated invariant or wire case, or the error."""
    witness: str = ""
    examples: int = 0
    """The number of examples of that suite until then; 0 if the suite does not count them."""
    cpu_s: float = 0.0


class _OutOfBudgetError(BaseException):
    """Ends a suite between two examples. It is not an Exception: no suite takes it for a failure."""


def examine(task: Task, on_suite: Callable[[str], None]) -> Verdict:
    """Run the suites until one detects the mutant, or the time is nearly used up.

    The processor time of the verdict is that of the whole process.
    """
    for judge in _rounds(task):
        on_suite(judge.suite)
        try:
            for outcome, by, witness, needed in _detections(judge, task):
                return Verdict(outcome, judge.suite, by, witness[:300], needed, time.process_time())
        except _OutOfBudgetError:
            why = f"time used up in {judge.suite}, {judge.examples} examples"
            return Verdict(Outcome.SURVIVED, by=why, cpu_s=time.process_time())
    return Verdict(Outcome.SURVIVED, cpu_s=time.process_time())


def _rounds(task: Task) -> Iterator[Judge]:
    """Yield the suites with their numbers of examples, and their cases, in the order in which they run."""
    for judge in task.judges:
        examples = min(judge.examples + FIRST_ROUNDS[0], task.examples)
        yield replace(judge, examples=examples, cases=judge.cases[: _first_cases(judge)])
    for judge in task.judges:
        for begin in range(_first_cases(judge), len(judge.cases), NEXT_CASES):
            yield replace(judge, cases=judge.cases[begin : begin + NEXT_CASES])
    for judge in task.judges:
        if not (judge.cases or judge.is_whole):
            yield replace(judge, examples=min(judge.examples + FIRST_ROUNDS[1], task.examples))
    for judge in task.judges:
        if not judge.is_whole and (judge.cases or judge.examples + FIRST_ROUNDS[-1] < task.examples):
            yield Judge(judge.suite, task.examples)


def _first_cases(judge: Judge) -> int:
    return FIRST_CASES if judge.suite in CASE_SUITES else len(judge.cases)


_Detection = tuple[Outcome, str, str, int]


def _detections(judge: Judge, task: Task) -> Iterator[_Detection]:
    """Yield what a suite detects, the first first."""
    if judge.suite == unit_tests.NAME:
        yield from ((Outcome.VIOLATION, name, why, 0) for name, why in unit_tests.failures(judge.cases))
        return

    def on_progress(*_: int) -> None:
        if time.process_time() > (1 - SPARE_PART) * task.cpu_s:
            raise _OutOfBudgetError

    for cases in _in_turn(judge):
        try:
            part = examined(judge.suite, judge.examples, task.seed, on_progress, cases)
        except Exception as error:  # whatever the changed code raises in the suite's process
            yield Outcome.BROKEN, type(error).__name__, str(error), 0
            return
        if part.refusal is not None:
            yield Outcome.BROKEN, type(part.refusal).__name__, str(part.refusal), 0
        examples = part.looked_at.get("examples", 0)
        for result in part.results:
            if result.verdict == "violated":
                witness = result.witnesses[0].text if result.witnesses else result.detail
                yield Outcome.VIOLATION, result.id, f"{result.detail} {witness}".strip(), examples


def _in_turn(judge: Judge) -> Iterator[tuple[str, ...]]:
    """Yield the cases that run together.

    Inspections run one at a time: a violation counts although the time is used up before the last one.
    """
    if judge.suite in ALONE and judge.cases:
        yield from ((case,) for case in judge.cases)
    else:
        yield judge.cases


def examined(
    suite: str,
    examples: int,
    seed: int,
    on_progress: Callable[[int, int], None],
    cases: tuple[str, ...] = (),
) -> "Part":
    """Run a suite, or some of its cases, on our code in this process, where the change is."""
    from mqproof.conformance.engine.run_options import RunOptions
    from mqproof.conformance.registry.suite_registry import conduct

    options = RunOptions("impl", seed=seed, examples=examples, shrink=False, ids=cases)
    if suite == "hostile":
        from mqproof.conformance.adapters.attacked_servers import attacked
        from mqproof.conformance.hostile.suite import run

        return run(options, on_progress, lambda _, setup: attacked(setup))
    with _target(suite) as target:
        return conduct(replace(options, target=target), suite, on_progress)


@contextmanager
def _target(suite: str) -> Iterator[str]:
    """Yield the name of the target; the wire cases need servers, which run in this process."""
    if suite != "wire":
        yield "impl"
        return
    from mqproof.conformance.mutants.wire import serving

    with serving() as address:
        yield f"remoting://{address}"
