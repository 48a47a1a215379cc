"""Judges one mutant by the suites, in a process of its own.

`python -m mqproof.conformance.mutation.examiner` reads a Task as JSON from standard input. It writes one line
of JSON for each suite that begins, and one with the Verdict. A mutant may end the process at any time; the
parent then knows the suite in which it happened.

Each suite runs with a few examples first, because these detect most mutants. Then each one runs with all of
its examples. What has not run when the processor time is nearly used up does not run.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

from mqproof.conformance.mutation import loading


class Outcome(StrEnum):
    """What happened to a mutant."""

    VIOLATION = "violation"  # a suite reports a violated invariant, or a failed wire case
    BROKEN = "broken"  # a suite cannot drive the target: it does not start, or it fails in every example
    ENDLESS = "endless"  # one example used up the time of the process, which must be a violation
    SURVIVED = "survived"  # every suite that reaches the line holds, as far as it ran in the time
    UNREACHED = "unreached"  # no suite executes the line


DETECTED: Final = frozenset({Outcome.VIOLATION, Outcome.BROKEN})
FIRST_EXAMPLES: Final = 10
"""The number of examples of each suite in the first round."""
SPARE_PART: Final = 0.3
"""The part of the processor time that is left for the example that runs when the rest is used up."""
_WITHOUT_EXAMPLES: Final = frozenset({"wire", "hostile", "damage"})
"""The suites with numbered cases, which run once."""


@dataclass(frozen=True, slots=True)
class Task:
    """One mutant, and the suites that judge it in this order."""

    module: str
    """The module that is mutated; empty for the original code."""
    number: int
    suites: tuple[str, ...]
    examples: int
    seed: int
    cpu_s: int
    """The process is ended after this much processor time."""


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
    """Run the suites until one detects the mutant, or the time is nearly used up."""
    began = time.process_time()
    for suite, examples in _runs(task):
        on_suite(suite)
        try:
            for outcome, by, witness, needed in _detections(suite, replace(task, examples=examples)):
                return Verdict(outcome, suite, by, witness[:300], needed, time.process_time() - began)
        except _OutOfBudgetError:
            why = f"time used up in {suite}, {examples} examples"
            return Verdict(Outcome.SURVIVED, by=why, cpu_s=time.process_time() - began)
    return Verdict(Outcome.SURVIVED, cpu_s=time.process_time() - began)


def _runs(task: Task) -> Iterator[tuple[str, int]]:
    """Yield the suites with their numbers of examples, in the order in which they run."""
    first = min(FIRST_EXAMPLES, task.examples)
    yield from ((suite, first) for suite in task.suites)
    if first < task.examples:
        yield from ((suite, task.examples) for suite in task.suites if suite not in _WITHOUT_EXAMPLES)


_Detection = tuple[Outcome, str, str, int]


def _detections(suite: str, task: Task) -> Iterator[_Detection]:
    """Yield what a suite detects, the first first."""
    try:
        yield from (_of_cases if suite == "wire" else _of_suite)(suite, task)
    except Exception as error:  # whatever the changed code raises in the suite's process
        yield Outcome.BROKEN, type(error).__name__, str(error), 0


def _of_suite(suite: str, task: Task, target: str = "impl") -> Iterator[_Detection]:
    from mqproof.conformance.engine.run_options import RunOptions
    from mqproof.conformance.registry.suite_registry import conduct

    def on_progress(*_: int) -> None:
        if task.cpu_s and time.process_time() > (1 - SPARE_PART) * task.cpu_s:
            raise _OutOfBudgetError

    options = RunOptions(target, seed=task.seed, examples=task.examples, shrink=False)
    part = conduct(options, suite, on_progress)
    if part.refusal is not None:
        yield Outcome.BROKEN, type(part.refusal).__name__, str(part.refusal), 0
    examples = part.looked_at.get("examples", 0)
    for result in part.results:
        if result.verdict == "violated":
            witness = result.witnesses[0].text if result.witnesses else result.detail
            yield Outcome.VIOLATION, result.id, f"{result.detail} {witness}".strip(), examples


def _of_cases(suite: str, task: Task) -> Iterator[_Detection]:
    """Run the wire cases on servers in this process, where the change is."""
    from mqproof.conformance.mutants.wire import serving

    with serving() as address:
        yield from _of_suite(suite, task, f"remoting://{address}")


def main() -> None:
    """Judge the mutant of standard input."""
    task = _task(json.load(sys.stdin))
    resource.setrlimit(resource.RLIMIT_CPU, (task.cpu_s, task.cpu_s + 1))
    lines = sys.stdout
    if task.module:
        loading.install(task.module, task.number)
    with redirect_stdout(sys.stderr):
        verdict = examine(task, lambda suite: print(json.dumps({"suite": suite}), file=lines, flush=True))
    print(json.dumps(asdict(verdict)), file=lines, flush=True)


def _task(fields: Mapping[str, object]) -> Task:
    return Task(**{**fields, "suites": tuple(fields["suites"])})  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
