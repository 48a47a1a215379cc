"""The suite as a function of a target: every invariant, judged on as many drawn examples as wanted.

The same seed draws the same examples. What fails is shrunk to a minimal script.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from conformance.checkers import CHECKERS, Finding
from conformance.history.steps import History, numbered
from conformance.machines.flush import FlushMachine
from conformance.session import SPEC_1, Session
from conformance.target import Capability, Target
from report.model import Result, Verdict, Witness
from spec.catalogue import catalogue

LAYER: Final = "conformance"
STEPS_MAX: Final = 40
"""Of one example, not counting what the session adds to examine a restarted broker."""
SHRINK_EXAMPLES_MAX: Final = 300
"""So many are judged to make a violation smaller, at most. No time: the same seed ends in the same script."""
SCRIPT: Final = "script"
"""The text of the witness whose values are the steps, by number."""

TargetFactory = Callable[[], Target]
Progress = Callable[[int, int], None]
"""Told (examples so far, examples in all)."""

_CRASHES: Final = (Capability.KILL, Capability.OS_CRASH, Capability.POWER_LOSS)
_ENDS: Final = (*_CRASHES, Capability.CLEAN_RESTART)
NEEDS: Final[dict[str, tuple[frozenset[Capability], frozenset[Capability]]]] = {
    "FLUSH-1": (frozenset({Capability.FLUSH_MODE}), frozenset(_CRASHES)),
    "FLUSH-2": (frozenset({Capability.FLUSH_MODE, Capability.KILL}), frozenset()),
    "FLUSH-5": (frozenset(), frozenset(_CRASHES)),
    "FLUSH-8": (frozenset(), frozenset(_ENDS)),
    "DELIV-5": (frozenset({Capability.COMMIT_OFFSET}), frozenset()),
}
"""Id to (all of these capabilities, one of these) without which it cannot be tested."""


@dataclass(slots=True)
class Examination:
    """What a run of the suite found; grows while it runs."""

    examples: int = 0
    """Until the first violation; shrinking is not counted."""
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {i: Counter() for i in (*CHECKERS, SPEC_1)}
    )
    held_in: Counter[str] = field(default_factory=Counter)
    """Id to the number of examples in which it held."""
    failures: dict[str, "Failure"] = field(default_factory=dict)
    """Id to the shortest run that violates it. Only the one that the search ended with is minimal."""
    actions: Counter[str] = field(default_factory=Counter)
    """How often each action of the model was needed to explain what was seen."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    history: History
    finding: Finding
    examples: int
    """It took so many to find the first violation."""


class ViolationError(Exception):
    """Ends an example. Each invariant has a class of its own, so that shrinking cannot slip to another."""

    by_id: Final[dict[str, type["ViolationError"]]] = {}


class _EnoughShrinkingError(BaseException):
    """Ends the search: no Exception, so that Hypothesis does not take it for one more failure."""


ViolationError.by_id.update(
    {invariant: type(f"{invariant} violated", (ViolationError,), {}) for invariant in (*CHECKERS, SPEC_1)}
)


def run_suite(
    target_factory: TargetFactory, examples: int, seed: int, on_progress: Progress | None = None
) -> tuple[Result, ...]:
    """Examine the target and return a result for every invariant of the suite, in the catalogue's order.

    Raises:
        TargetError: the target could not be driven.
    """
    examination = examine(target_factory, examples, seed, on_progress)
    return results(examination, target_factory(), examples, seed)


def examine(
    target_factory: TargetFactory,
    examples: int,
    seed: int,
    on_progress: Progress | None = None,
    *,
    wanted: frozenset[str] | None = None,
    shrink: bool = True,
) -> Examination:
    """Draw and judge examples until one violates an invariant; then shrink it.

    `wanted`: only violations of these ids count; None for all.
    """
    examination = Examination()
    began = time.monotonic()
    shrunk = 0

    def judge(session: Session) -> None:
        nonlocal shrunk
        findings = session.findings()
        violated = [i for i, finding in findings.items() if finding.verdict is Verdict.VIOLATED]
        chosen = [invariant for invariant in violated if wanted is None or invariant in wanted]
        # The example of a broker that does not come up, which nobody asked about, is drawn again.
        if not examination.failures and (chosen or not session.dead):
            _count(examination, session, findings)
            if on_progress:
                on_progress(examination.examples, examples)
        shrunk += bool(examination.failures)
        if shrunk > SHRINK_EXAMPLES_MAX:
            raise _EnoughShrinkingError
        for invariant in chosen:
            failure = Failure(session.history, findings[invariant], examination.examples)
            found = examination.failures.setdefault(invariant, failure)
            if len(failure.history.operations) <= len(found.history.operations):
                examination.failures[invariant] = failure
        if chosen:
            raise ViolationError.by_id[chosen[0]](numbered(session.history))

    class Machine(FlushMachine):
        def __init__(self) -> None:
            super().__init__(target_factory(), judge)

    try:
        run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=_settings(examples, shrink=shrink))
    except (ViolationError, Flaky, _EnoughShrinkingError):
        # Flaky: a target that does not repeat itself; the failure stands as it was last seen.
        if not examination.failures:
            raise
    examination.seconds = time.monotonic() - began
    return examination


def _settings(examples: int, *, shrink: bool) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=STEPS_MAX,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


def _count(examination: Examination, session: Session, findings: dict[str, Finding]) -> None:
    examination.examples += 1
    examination.actions.update(session.oracle.actions)
    for invariant, finding in findings.items():
        examination.counts[invariant].update(finding.counts)
        examination.held_in[invariant] += finding.verdict is Verdict.HELD


def results(examination: Examination, target: Target, examples: int, seed: int) -> tuple[Result, ...]:
    """The examination as results; `examples` is how many there could have been."""
    replay = f"mqproof conform --target {target.name} --seed {seed} --examples {examples}"
    known = [invariant for invariant in catalogue() if invariant in examination.counts]
    return tuple(_result(examination, target.capabilities, invariant, replay) for invariant in known)


def _result(
    examination: Examination, capabilities: frozenset[Capability], invariant: str, replay: str
) -> Result:
    name = catalogue()[invariant].name
    counts = {"examples": examination.examples, **examination.counts[invariant]}
    if failure := examination.failures.get(invariant):
        return Result(
            invariant,
            name,
            LAYER,
            Verdict.VIOLATED,
            counts,
            (*failure.finding.witnesses, _script(failure.history)),
            f"violated by example {failure.examples}",
            replay,
            examination.seconds,
        )
    if missing := _missing(invariant, capabilities):
        return Result(
            invariant, name, LAYER, Verdict.NOT_TESTED, detail=f"the target cannot be asked for {missing}"
        )
    if not examination.held_in[invariant]:
        detail = "no example showed anything about it"
        return Result(invariant, name, LAYER, Verdict.UNKNOWN, counts, detail=detail)
    return Result(invariant, name, LAYER, Verdict.HELD, counts, seconds=examination.seconds)


def _missing(invariant: str, capabilities: frozenset[Capability]) -> str:
    needed, one_of = NEEDS.get(invariant, (frozenset(), frozenset()))
    missing: list[str] = sorted(needed - capabilities)
    if one_of and not one_of & capabilities:
        missing.append(" or ".join(sorted(one_of)))
    return ", ".join(missing)


def _script(history: History) -> Witness:
    steps = (line.strip().partition(". ") for line in numbered(history).splitlines())
    return Witness(SCRIPT, {number: step for number, _, step in steps})
