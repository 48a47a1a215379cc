"""Runs a suite against a target: judges every invariant on drawn examples.

The same seed draws the same examples. A failure is shrunk to a minimal script. The suites are in
conformance/suites; `conformance/registry` lists them all.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, cast

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from mqproof.conformance.engine import time_bounds
from mqproof.conformance.engine.coverage_feedback import Feedback
from mqproof.conformance.engine.directed_scenarios import DirectedScenarios
from mqproof.conformance.engine.examination import Examination
from mqproof.conformance.engine.example import EndlessExampleError, Machine, UndrivableError
from mqproof.conformance.engine.failing_example import FailingExample
from mqproof.conformance.engine.finding import SPEC_1, Finding, with_wrong_answers
from mqproof.conformance.engine.seeded_draws import repeatable
from mqproof.conformance.engine.suite_definition import Session, Suite, TargetFactory
from mqproof.conformance.engine.suite_results import results
from mqproof.conformance.engine.targets import IMPL, MUTANT, REFERENCE, TargetError
from mqproof.report.model import Result, Verdict, Witness

STEPS_MAX: Final = 40
"""The maximum number of steps of one example, without the steps that examine a restarted broker."""
SHRINK_EXAMPLES_MAX: Final = 300
"""The maximum number of runs judged while a violation is shrunk."""
SHRINK_SECONDS_MAX: Final = 110.0
"""The time after which shrinking begins no further run, so that it ends within two minutes.

For targets in this process it is processor time, and far more than they need: the same seed ends in the same
script, however busy the machine is.
"""

Progress = Callable[[int, int], None]
"""Called with (number of finished examples, total number of examples)."""
OnExample = Callable[[int, Session], None]
"""Called with the number and the session of each counted example; not called while a violation is shrunk."""


class ViolationError(Exception):
    """Ends an example.

    Each invariant has its own subclass, so that shrinking cannot switch to another invariant.
    """


@cache
def _violation(invariant: str) -> type[ViolationError]:
    return type(f"{invariant} violated", (ViolationError,), {})


class _EnoughError(BaseException):
    """Ends the search. It is not an Exception, so that Hypothesis does not treat it as one more failure."""


def run_suite(
    target_factory: TargetFactory,
    examples: int,
    seed: int,
    on_progress: Progress | None = None,
    *,
    suite: Suite,
) -> tuple[Result, ...]:
    """Examine the target and return a result for every invariant of the suite, in the catalogue's order.

    Raises:
        TargetError: the target could not be driven.
    """
    examination = examine(target_factory, examples, seed, on_progress, suite=suite)
    return results(examination, target_factory(), examples, seed)


def examine(
    target_factory: TargetFactory,
    examples: int,
    seed: int,
    on_progress: Progress | None = None,
    *,
    suite: Suite,
    wanted: frozenset[str] | None = None,
    shrink: bool = True,
    on_example: OnExample = lambda *_: None,
    feedback: Feedback | None = None,
) -> Examination:
    """Draw and judge examples until one violates an invariant; then shrink it.

    `wanted`: only violations of these ids count; None for all. `feedback`: the search prefers examples for
    which it is high; None for no preference. The drawn examples depend on the seed, and on the answers of the
    target if it is not deterministic.

    Raises:
        TargetError: the target could not be driven.
    """
    began = time.monotonic()
    scenarios = DirectedScenarios(suite, seed, wanted)
    search = _Search(
        target_factory,
        Examination(suite),
        examples,
        wanted,
        shrink,
        on_progress,
        on_example,
        scenarios,
        feedback,
    )
    examination = search.examination
    complete, before = search.run(seed, examples), 0
    while not complete and before < examination.examples < examples:
        before = examination.examples
        complete = search.run(f"{seed}, after {before} examples", examples - before)
    examination.seconds = time.monotonic() - began
    examination.pairs = scenarios.coverage
    return examination


@dataclass(slots=True)
class _Search:
    """Draws examples with Hypothesis and records the findings of each in the examination."""

    target_factory: TargetFactory
    examination: Examination
    examples: int
    wanted: frozenset[str] | None
    shrink: bool
    on_progress: Progress | None
    on_example: OnExample
    scenarios: DirectedScenarios
    feedback: Feedback | None
    shrunk: int = 0
    """The number of runs judged since the first violation."""
    violated: str = ""
    """The invariant whose violation ended the last run; empty if it ended otherwise."""
    clock: Callable[[], float] = time.monotonic
    """The clock that measures the time for shrinking."""
    deadline_s: float = math.inf
    """The time of this clock at which shrinking ends."""

    def run(self, seed: int | str, examples: int) -> bool:
        """Return False if the search stopped because the target answered a repeated example differently.

        Raises:
            TargetError: the target could not be driven.
        """
        found = FailingExample()
        phases = (Phase.generate, Phase.target) if self.feedback else (Phase.generate,)
        complete = self._run(seed, _settings(examples, found, *phases))
        if self.shrink and self.violated:
            self._shrink(seed, found)
        return complete

    def _shrink(self, seed: int | str, found: FailingExample) -> None:
        """Shrink the scenario of the failing example first, and then its drawn steps."""
        violated, self.deadline_s = self.violated, self.clock() + SHRINK_SECONDS_MAX

        def fails_again() -> bool:
            self.violated = ""
            self._run(seed, _settings(1, found, Phase.reuse))
            return self.violated == violated

        self.scenarios.simplify(fails_again)
        self._run(seed, _settings(1, found, Phase.reuse, Phase.shrink))

    def _run(self, seed: int | str, settings: hypothesis.settings) -> bool:
        """Run the phases of the settings; return as `run` does."""
        seeded = hypothesis.seed(seed)(partial(self._machine))  # a bound method does not accept attributes
        try:
            with repeatable():
                run_state_machine_as_test(seeded, settings=settings)  # type: ignore[arg-type]  # any factory does
        except (ViolationError, _EnoughError):
            return True
        except time_bounds.BudgetInterrupt:
            time_bounds.end_budget()
            return True
        except EndlessExampleError as ended:
            self._keep_endless(ended)
            return True
        except (Flaky, UndrivableError) as ended:
            if time_bounds.is_used_up():
                time_bounds.end_budget()
                return True  # the interruption left a target that is down
            if self.examination.failures:
                return True  # it ended while shrinking: the earlier failure is still valid
            if error := _died_of(ended):
                raise error from None
            return False
        return True

    def _keep_endless(self, ended: EndlessExampleError) -> None:
        """Keep an example that never ends as a violation: no behaviour of the model explains it.

        It is not shrunk, because each run would take as long.
        """
        examination = self.examination
        if not examination.failures:
            session = cast("Session", ended.session)
            examination.examples += 1
            finding = Finding(Verdict.VIOLATED, {}, (Witness(ended.why),))
            examination.keep_failure(SPEC_1, session, finding, shrinking=False)

    def _machine(self) -> RuleBasedStateMachine:
        try:
            target = self.target_factory()
            machine = self.examination.suite.machine(target, self._judge)
        except TargetError as error:
            raise UndrivableError(error) from None
        self.scenarios.fit(target.capabilities)
        if target.name in (REFERENCE, IMPL) or target.name.startswith(MUTANT):
            self.clock = time.process_time
        if isinstance(machine, Machine):
            machine.scenario = self.scenarios.perform
        return machine

    def _judge(self, session: Session) -> None:
        """Count the run and keep its violations.

        Raises ViolationError for a violation of a wanted invariant.
        """
        examination = self.examination
        findings = with_wrong_answers(session.findings(), getattr(session.target, "wrong_answers", ()))
        violated = [i for i, finding in findings.items() if finding.verdict is Verdict.VIOLATED]
        chosen = [invariant for invariant in violated if self.wanted is None or invariant in self.wanted]
        # An example whose broker does not start again is drawn again, unless it violates a wanted invariant.
        if not examination.failures and (chosen or not session.dead):
            examination.count(session, findings)
            self.scenarios.count()
            self.on_example(examination.examples, session)
            if self.feedback:
                hypothesis.target(self.feedback(session), label="reached")
            if self.on_progress:
                self.on_progress(examination.examples, self.examples)
            time_bounds.check()
        self.shrunk += bool(examination.failures)
        if self.shrunk > SHRINK_EXAMPLES_MAX or self.clock() > self.deadline_s:
            raise _EnoughError
        for invariant in chosen:
            self.scenarios.keep()
            examination.keep_failure(invariant, session, findings[invariant], shrinking=bool(self.shrunk))
        if chosen:
            self.violated = chosen[0]
            if not self.shrink:
                raise _EnoughError  # Hypothesis would repeat the example
            raise _violation(chosen[0])("\n".join(session.script()))


def _died_of(ended: BaseException | None) -> TargetError | None:
    """Return the TargetError in the context of the exception, if there is one.

    If the target fails in an example that it survived before, Hypothesis reports that the two runs differ.
    The error that ended the target is then in the context of that report.
    """
    while ended is not None:
        if isinstance(ended, UndrivableError):
            return ended.error
        ended = ended.__context__
    return None


def _settings(examples: int, found: FailingExample, *phases: Phase) -> hypothesis.settings:
    """Return the settings of a search. `found` keeps the failing example, which Phase.reuse repeats."""
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=STEPS_MAX,
        phases=phases,
        database=found,
        deadline=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
