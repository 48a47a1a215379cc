"""A suite as a function of a target: every invariant, judged on as many drawn examples as wanted.

The same seed draws the same examples. What fails is shrunk to a minimal script. `FLUSH` is the suite of
brokers and their stores; conformance/suites/routing has that of name servers.
"""

import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from mqproof.conformance.engine.example import UndrivableError
from mqproof.conformance.engine.seeded_draws import repeatable
from mqproof.conformance.faults.kinds import FaultKind
from mqproof.conformance.history.finding import Finding
from mqproof.conformance.suites.flush.checkers import CHECKERS
from mqproof.conformance.suites.flush.machine import FlushMachine
from mqproof.conformance.suites.flush.session import SPEC_1
from mqproof.conformance.suites.flush.target import Capability, TargetError
from mqproof.report.model import Moment, Result, Verdict, Witness
from mqproof.spec.catalogue import catalogue
from mqproof.spec.events import Event

STEPS_MAX: Final = 40
"""Of one example, not counting what the session adds to examine a restarted broker."""
SHRINK_EXAMPLES_MAX: Final = 300
"""So many are judged to make a violation smaller, at most. No time: the same seed ends in the same script."""
SCRIPT: Final = "the shortest run seen that violates it"
"""The text of the witness whose timeline has the steps."""

Progress = Callable[[int, int], None]
"""Told (examples so far, examples in all)."""


class Examined(Protocol):
    """A target, as far as every suite knows it."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> frozenset[Any]: ...


class Session(Protocol):
    """One run of one target."""

    dead: bool
    """The target does not come up again."""

    @property
    def target(self) -> Any:
        """What it drives. One that keeps an event log has it as `events`."""
        ...

    def findings(self) -> dict[str, Finding]: ...
    def faults(self) -> Counter[FaultKind]:
        """How often each was met."""
        ...

    def actions(self) -> Counter[str]:
        """How often each action of the model was needed to explain what was seen."""
        ...

    def script(self) -> list[str]:
        """The run as steps for people."""
        ...


TargetFactory = Callable[[], Any]
"""Of targets of one suite."""
OnExample = Callable[[int, Session], None]
"""Told of each example that counts, with its number; not of what makes a violation smaller."""
Judge = Callable[[Session], None]
"""Told of each run that nothing interrupted; raises if it is displeased."""


@dataclass(frozen=True, slots=True)
class Need:
    """The capabilities without which an invariant cannot be tested."""

    one_of: frozenset[Any] = frozenset()
    ways: frozenset[Any] = frozenset()
    """One of these as well. What is held is told with those that the target lacks."""


Needs = Mapping[str, Need]


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    model: str
    """The module of spec/tla whose actions explain what is seen."""
    ids: tuple[str, ...]
    """What it judges."""
    needs: Needs
    machine: Callable[[Any, Judge], RuleBasedStateMachine]
    """A class of state machines, made of a target and a judge."""


_CRASHES: Final = (Capability.KILL, Capability.OS_CRASH, Capability.POWER_LOSS)
_ENDS: Final = (*_CRASHES, Capability.CLEAN_RESTART)
_NEEDS: Final = {
    "FLUSH-1": Need(frozenset({Capability.FLUSH_MODE, Capability.SYNC_FLUSH}), frozenset(_CRASHES)),
    "FLUSH-2": Need(frozenset({Capability.FLUSH_MODE, Capability.ASYNC_FLUSH}), frozenset({Capability.KILL})),
    "FLUSH-5": Need(ways=frozenset(_CRASHES)),
    "FLUSH-8": Need(ways=frozenset(_ENDS)),
    "DELIV-5": Need(frozenset({Capability.COMMIT_OFFSET})),
}

FLUSH: Final = Suite("flush", "Flush.tla", (*CHECKERS, SPEC_1), _NEEDS, FlushMachine)
"""One broker and its store: sends, pulls, offsets, crashes."""


@dataclass(slots=True)
class Examination:
    """What a run of the suite found; grows while it runs."""

    suite: Suite
    examples: int = 0
    """Until the first violation; shrinking is not counted."""
    operations: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter)
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    held_in: Counter[str] = field(default_factory=Counter)
    """Id to the number of examples in which it held."""
    failures: dict[str, "Failure"] = field(default_factory=dict)
    """Id to the shortest run that violates it. Only the one that the search ended with is minimal."""
    actions: Counter[str] = field(default_factory=Counter)
    """How often each action of the model was needed to explain what was seen."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    script: tuple[str, ...]
    finding: Finding
    examples: int
    """It took so many to find the first violation."""
    events: tuple[Event, ...] = ()
    """The target's event log of this run, if it keeps one."""
    drawn: bool = True
    """That one is a violation of this invariant; else only a shorter run is, made of it."""


class ViolationError(Exception):
    """Ends an example. Each invariant has a class of its own, so that shrinking cannot slip to another."""


@cache
def _violation(invariant: str) -> type[ViolationError]:
    return type(f"{invariant} violated", (ViolationError,), {})


class _EnoughShrinkingError(BaseException):
    """Ends the search: no Exception, so that Hypothesis does not take it for one more failure."""


def run_suite(
    target_factory: TargetFactory,
    examples: int,
    seed: int,
    on_progress: Progress | None = None,
    *,
    suite: Suite = FLUSH,
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
    suite: Suite = FLUSH,
    wanted: frozenset[str] | None = None,
    shrink: bool = True,
    on_example: OnExample = lambda *_: None,
) -> Examination:
    """Draw and judge examples until one violates an invariant; then shrink it.

    `wanted`: only violations of these ids count; None for all. What is drawn depends on the seed, and on the
    answers of a target that does not repeat itself.

    Raises:
        TargetError: the target could not be driven.
    """
    examination = Examination(suite)
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
            on_example(examination.examples, session)
            if on_progress:
                on_progress(examination.examples, examples)
        shrunk += bool(examination.failures)
        if shrunk > SHRINK_EXAMPLES_MAX:
            raise _EnoughShrinkingError
        if not chosen:
            return
        script, events = tuple(session.script()), tuple(getattr(session.target, "events", ()))
        for invariant in chosen:
            found = examination.failures.get(invariant)
            if found is None and shrunk:
                examination.counts[invariant].update(findings[invariant].counts)
            if found is None or len(script) <= len(found.script):
                drawn = not shrunk if found is None else found.drawn
                examination.failures[invariant] = Failure(
                    script, findings[invariant], examination.examples, events, drawn=drawn
                )
        raise _violation(chosen[0])("\n".join(script))

    def machine() -> RuleBasedStateMachine:
        try:
            return suite.machine(target_factory(), judge)
        except TargetError as error:
            raise UndrivableError(error) from None

    def search(seed: int | str, examples: int) -> bool:
        """False when it was broken off, by answers that are not those of a like example before."""
        settings = _settings(examples, shrink=shrink)
        seeded = hypothesis.seed(seed)(machine)
        try:
            with repeatable():
                run_state_machine_as_test(seeded, settings=settings)  # type: ignore[arg-type]  # any factory does
        except (ViolationError, _EnoughShrinkingError):
            return True
        except (Flaky, UndrivableError) as ended:
            if examination.failures:
                return True  # while it was made smaller: what was found before stands
            if error := _died_of(ended):
                raise error from None
            return False
        return True

    whole, before = search(seed, examples), 0
    while not whole and before < examination.examples < examples:
        before = examination.examples
        whole = search(f"{seed}, after {before} examples", examples - before)
    examination.seconds = time.monotonic() - began
    return examination


def _died_of(ended: BaseException | None) -> TargetError | None:
    """Where a target dies that lived on in a like example before, Hypothesis tells that the examples differ;
    what the target died of is the context."""
    while ended is not None:
        if isinstance(ended, UndrivableError):
            return ended.error
        ended = ended.__context__
    return None


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
    examination.operations += len(session.script()) - 1  # the first step opens the target
    examination.faults.update(session.faults())
    examination.actions.update(session.actions())
    for invariant, finding in findings.items():
        examination.counts[invariant].update(finding.counts)
        examination.held_in[invariant] += finding.verdict is Verdict.HELD


def results(
    examination: Examination,
    target: Examined,
    examples: int,
    seed: int,
    *,
    ids: Container[str] | None = None,
    replay: str = "",
) -> tuple[Result, ...]:
    """The examination as results; `examples` is how many there could have been.

    `ids`: only these; None for all. `replay`: the command that repeats it, if it is not the plain one.
    """
    suite = examination.suite
    replay = replay or (
        f"mqproof conform --target {shlex.quote(target.name)}{of_suite(suite)} --seed {seed}"
        f" --examples {examples}"
    )
    found = (
        _result(examination, target.capabilities, invariant, replay)
        for invariant in known(suite)
        if ids is None or invariant in ids
    )
    return shared(found, examination.seconds)


def shared(found: Iterable[Result], seconds: float) -> tuple[Result, ...]:
    """Results that were found together, each with its share of the time that they took."""
    results = tuple(found)
    share = seconds / max(1, sum(each.verdict is not Verdict.NOT_TESTED for each in results))
    return tuple(
        each if each.verdict is Verdict.NOT_TESTED else replace(each, seconds=share) for each in results
    )


def known(suite: Suite) -> tuple[str, ...]:
    """The ids that the suite judges, in the catalogue's order."""
    return tuple(invariant for invariant in catalogue() if invariant in suite.ids)


def of_suite(suite: Suite) -> str:
    """How `conform` is told of this suite alone."""
    return f" --suite {suite.name}"


def _result(examination: Examination, capabilities: frozenset[Any], invariant: str, replay: str) -> Result:
    name, layer = catalogue()[invariant].name, examination.suite.name
    counts = {"examples": examination.examples, **examination.counts[invariant]}
    if failure := examination.failures.get(invariant):
        return Result(
            invariant,
            name,
            layer,
            Verdict.VIOLATED,
            counts,
            (*failure.finding.witnesses, scripted(failure.script)),
            f"violated by {'' if failure.drawn else 'a shorter run made of '}example {failure.examples}",
            replay,
        )
    need = examination.suite.needs.get(invariant, Need())
    if missing := _missing(need, capabilities):
        return Result(
            invariant, name, layer, Verdict.NOT_TESTED, detail=f"the target cannot be asked for {missing}"
        )
    if not examination.held_in[invariant]:
        detail = "no example showed anything about it"
        return Result(invariant, name, layer, Verdict.UNKNOWN, counts, detail=detail)
    lacking = ", ".join(sorted(need.ways - capabilities))
    detail = f"the target cannot be asked for {lacking}" if lacking else ""
    return Result(invariant, name, layer, Verdict.HELD, counts, detail=detail)


def _missing(need: Need, capabilities: frozenset[Any]) -> str:
    groups = (group for group in (need.one_of, need.ways) if group and not group & capabilities)
    return ", ".join(" or ".join(sorted(group)) for group in groups)


def scripted(steps: Iterable[str]) -> Witness:
    """Steps as `script` tells them, for people."""
    parted = ((str(number), *step.partition(": ")) for number, step in enumerate(steps, start=1))
    return Witness(SCRIPT, timeline=tuple(Moment(at, done, answer) for at, done, _, answer in parted))
