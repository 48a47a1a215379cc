"""Asks TLC the questions of models.toml and turns its answers into results.

Some questions must be answered "violated": a probe, a mutant, a run without its fairness. Their result is
HELD when TLC reports the violation, because the recorded expectation is what is judged. Each result contains
the command that runs the question again.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spec import actions, vacuity
from mqproof.spec.catalogue import id_of
from mqproof.spec.model_file import MODELS_FILE, Kind, Models, Question
from mqproof.spec.syntax import SyntaxProblemError
from mqproof.spec.tlc.errors import UNDECIDED, Reason, TlcError
from mqproof.spec.tlc.parallel import run_each
from mqproof.spec.tlc.random_behaviour import walk
from mqproof.spec.tlc.run import DEADLOCK, Job, Outcome
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.trace import Trace, changed
from mqproof.spec.tlc.values import State

LAYER: Final = "tla"

_BRIEF_STATES: Final = 20_000
"""The number of states below which a run is too short for the JVM's second compiler to be useful.

A run that stops at a violation is counted as short too.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """TLC's answer to one question."""

    question: Question
    results: tuple[Result, ...]
    states: int
    depth: int
    seconds: float
    trace: Trace | None
    """The path to a violation, expected or not."""


class Progress:
    """Receives progress while questions are asked. Subclasses override the methods they need."""

    def started(self, question: Question) -> None:
        """Called from another thread when TLC starts."""

    def found(self, question: Question, states: int) -> None:
        """Called from another thread with the number of distinct states that TLC found so far."""

    def answered(self, answer: Answer) -> None:
        """Called with each complete answer, in the order of the questions."""


def ask(models: Models, question: Question, toolbox: Toolbox | None = None) -> Answer:
    """Ask one question.

    Running out of time or memory is a verdict of UNKNOWN.

    Raises:
        TlcError: TLC gave no verdict for any other reason; the message names the question.
    """
    return next(ask_each(models, (question,), toolbox=toolbox))


def ask_each(
    models: Models,
    questions: Sequence[Question],
    progress: Progress | None = None,
    toolbox: Toolbox | None = None,
) -> Iterator[Answer]:
    """Ask the questions, in parallel if there are enough cores, and yield answers in order.

    Raises as `ask`.
    """
    follower = progress or Progress()
    found = run_each(
        [_job(models, question) for question in questions],
        toolbox,
        on_start=lambda place: follower.started(questions[place]),
        on_states=lambda place, states: follower.found(questions[place], states),
    )
    with closing(found):
        for question, outcome in zip(questions, found, strict=True):
            answer = _judge(models, question, outcome)
            follower.answered(answer)
            yield answer


def ask_all(
    models: Models,
    questions: Iterable[Question],
    progress: Progress | None = None,
    toolbox: Toolbox | None = None,
) -> tuple[Answer, ...]:
    """Return all answers of `ask_each`."""
    return tuple(ask_each(models, tuple(questions), progress, toolbox))


def simulated(
    models: Models, question: Question, depth: int, seed: int, toolbox: Toolbox | None = None
) -> Trace:
    """Return a random behaviour under the constants and specification of a question.

    Raises:
        TlcError: as `walk`. SyntaxProblemError: the specification cannot be read.
    """
    init, next_name = _behaviour(models, question)
    return walk(_job(models, question), depth, seed, init, next_name, toolbox)


def _behaviour(models: Models, question: Question) -> tuple[str, str]:
    """Return the names of the initial predicate and the next-state relation."""
    if models.file != MODELS_FILE:
        modules = actions.load(question.module, models.libraries)
        return actions.init_of(question, modules), actions.next_of(question, modules)
    # Our modules that bound another one, and their mutants, name them MCInit and MCNext.
    prefix = "" if question.config.names("SPECIFICATION") == ("Spec",) else "MC"
    return f"{prefix}Init", f"{prefix}Next"


def _judge(models: Models, question: Question, outcome: Outcome | TlcError) -> Answer:
    if isinstance(outcome, TlcError):
        if outcome.reason not in UNDECIDED:
            named = f"{question.model} {question.name}: {outcome}"
            raise TlcError(outcome.reason, named, outcome.text) from None
        unknown = _result(models, question, question.name, Verdict.UNKNOWN, {}, detail=str(outcome))
        return Answer(question, (unknown,), 0, 0, 0.0, None)
    if question.kind is Kind.PROBES:
        results = _judge_probes(models, question, outcome)
    elif question.kind is Kind.VACUITY:
        results = _judge_vacuity(models, question, outcome)
    elif question.violates is not None:
        results = (_judge_negative(models, question, outcome),)
    else:
        results = _judge_check(models, question, outcome)
    return Answer(question, results, outcome.distinct, outcome.depth, outcome.seconds, outcome.trace)


def to_record(states: int, depth: int) -> str:
    """Return the lines of models.toml that record the size of a run."""
    return f"states = {states}, depth = {depth}"


def replay(models: Models, question: Question) -> str:
    """Return the command that runs this question again."""
    command = ["mqproof", "check", question.model, "--only", question.name]
    if models.file != MODELS_FILE:
        command += ["--models", str(models.file)]
    return shlex.join(command)


def _job(models: Models, question: Question) -> Job:
    if question.kind is Kind.VACUITY:
        return _watched(models, question).job
    job = Job(
        question.module,
        question.config.text(),
        models.libraries,
        workers=question.workers,
        deadlock=question.deadlock,
        seconds_max=question.seconds_max,
        heap_mib=question.heap_mib,
        brief=question.states is None or question.states.high < _BRIEF_STATES,
    )
    if question.kind is not Kind.PROBES:
        return job
    module = f"{question.module}Probes"
    asked = question.config.asking("Probes", "INVARIANT").text()
    return replace(job, module=module, config=asked, sources={module: _probe_module(module, question)})


def _probe_module(module: str, question: Question) -> str:
    # Each probe has a register, so that only the first state that falsifies it is printed. TLC stops after
    # the last probe is falsified. A probe that is never falsified costs the whole state space; the others
    # cost little.
    report = 'PrintT(<<"probe", {n}, TLCGet("level")>>)'
    probes = [
        f"    /\\ TLCGet({n}) \\/ {probe} \\/ (TLCSet({n}, TRUE) /\\ {report.format(n=n)})"
        for n, probe in enumerate(question.probes, start=1)
    ]
    seen = f"\\A n \\in 1..{len(question.probes)} : TLCGet(n)"
    probes.append(f'    /\\ ({seen}) => TLCSet("exit", TRUE)')
    registers = f"ASSUME \\A n \\in 1..{len(question.probes)} : TLCSet(n, FALSE)"
    extends = f"EXTENDS {question.module}, TLC"
    return "\n".join([f"---- MODULE {module} ----", extends, registers, "Probes ==", *probes, "===="]) + "\n"


def _judge_probes(models: Models, question: Question, outcome: Outcome) -> tuple[Result, ...]:
    levels: dict[int, int] = {}
    for line in outcome.text.splitlines():
        if line.startswith('<<"probe", '):
            register, level = line.removeprefix('<<"probe", ').removesuffix(">>").split(", ")
            levels.setdefault(int(register), int(level))
    results: list[Result] = []
    for number, probe in enumerate(question.probes, start=1):
        seen = number in levels
        never = "" if seen else f"never false in {outcome.distinct} states: its situation does not occur"
        results.append(
            _result(
                models,
                question,
                probe,
                Verdict.HELD if seen else Verdict.VIOLATED,
                {"states": outcome.distinct, "first seen at depth": levels.get(number, 0)},
                detail=never,
                seconds=outcome.seconds / len(question.probes),
            )
        )
    return tuple(results)


def _watched(models: Models, question: Question) -> vacuity.Plan:
    try:
        return vacuity.plan(question, models.libraries)
    except SyntaxProblemError as error:
        raise TlcError(Reason.PARSE, f"{question.model} {question.name}: {error}") from None


def _judge_vacuity(models: Models, question: Question, outcome: Outcome) -> tuple[Result, ...]:
    watched = _watched(models, question)
    seen = watched.seen(outcome)

    def judged(shown: str, what: str, all_of: tuple[str, ...], word: str) -> Result:
        excluded = {each for each in all_of if each.partition(":")[0] in question.never}
        wrong = [f"never {word}: {each}" for each in all_of if each not in seen | excluded]
        # A property may make several claims, some of which the constants exclude.
        happened = {each.partition(":")[0] for each in excluded & seen}
        happened -= {each.partition(":")[0] for each in excluded - seen}
        wrong += [f"{word}, but listed under never: {name}" for name in sorted(happened)]
        verdict = Verdict.VIOLATED if wrong else Verdict.HELD
        counts = {what: len(all_of), "states": outcome.distinct}
        seconds = outcome.seconds / 2
        return _result(models, question, shown, verdict, counts, detail="; ".join(wrong), seconds=seconds)

    return (
        judged("EveryActionTaken", "actions", watched.actions, "taken"),
        judged("NoVacuity", "antecedents", watched.claims, "true"),
    )


def _judge_negative(models: Models, question: Question, outcome: Outcome) -> Result:
    broken = outcome.violated == question.violates
    detail = "" if broken else f"{question.violates} must be violated, but "
    if not broken:
        detail += f"{outcome.violated} was" if outcome.violated else "everything held"
    length = len(outcome.trace) if outcome.trace else 0
    return _result(
        models,
        question,
        str(question.violates),
        Verdict.HELD if broken else Verdict.VIOLATED,
        {"states": outcome.distinct, "steps": length},
        detail=detail,
        seconds=outcome.seconds,
    )


def _judge_check(models: Models, question: Question, outcome: Outcome) -> tuple[Result, ...]:
    asked = [*question.config.properties, *([DEADLOCK] if question.deadlock else [])]
    # The violated temporal property may be one of several: TLC does not report which.
    named = [name for name in asked if name != outcome.violated]
    verdict = Verdict.HELD if outcome.violated is None else Verdict.UNKNOWN
    stopped = f"the run stopped when {outcome.violated} was violated" if outcome.violated else ""
    counts = {"states": outcome.distinct, "depth": outcome.depth}
    seconds = outcome.seconds / max(len(asked), 1)
    results = [
        _result(models, question, name, verdict, counts, detail=stopped, seconds=seconds) for name in named
    ]
    if outcome.violated is None:
        return (*results, _judge_size(models, question, outcome))
    violated = _result(
        models,
        question,
        outcome.violated,
        Verdict.VIOLATED,
        counts,
        detail=f"{question.module} under {question.name}",
        witnesses=_witnesses(outcome.trace),
        seconds=seconds,
    )
    return (violated, *results)


def _judge_size(models: Models, question: Question, outcome: Outcome) -> Result:
    """Compare the size with the recorded one. A different size means that the model changed its meaning."""
    counts = {"states": outcome.distinct, "depth": outcome.depth}
    if question.states is None and question.depth is None:
        detail = f"nothing recorded; record in models.toml: {to_record(outcome.distinct, outcome.depth)}"
        return _result(models, question, "RecordedSize", Verdict.NOT_TESTED, counts, detail=detail)
    off: list[str] = []
    if question.states is not None and outcome.distinct not in question.states:
        off.append(f"{outcome.distinct} distinct states, {question.states} recorded")
    if question.depth is not None:
        highest = question.depth.high if question.workers == 1 else outcome.depth
        if not question.depth.low <= outcome.depth <= highest:
            off.append(f"depth {outcome.depth}, {question.depth} recorded")
    verdict = Verdict.VIOLATED if off else Verdict.HELD
    return _result(models, question, "RecordedSize", verdict, counts, detail="; ".join(off))


def _result(
    models: Models,
    question: Question,
    name: str,
    verdict: Verdict,
    counts: dict[str, int],
    *,
    detail: str = "",
    witnesses: tuple[Witness, ...] = (),
    seconds: float = 0.0,
) -> Result:
    result_id, shown = _naming(question, name)
    return Result(
        id=result_id,
        name=shown,
        layer=LAYER,
        verdict=verdict,
        counts=counts,
        witnesses=witnesses,
        detail=detail,
        replay=replay(models, question),
        seconds=seconds,
    )


def _naming(question: Question, name: str) -> tuple[str, str]:
    """Return the id and name of the result that `question` gives for the property `name`."""
    place = f"{question.model}.{question.name}"
    match question.kind:
        case Kind.CHECK if question.violates is not None:
            return place, f"{name} is violated, as expected"
        case Kind.CHECK:
            found = id_of(question.model, name)
            return (place if found == f"{question.model}.{name}" else found), name
        case Kind.MUTANT:
            return id_of(question.model, name), f"{name} catches {question.name}"
        case Kind.FAIRNESS:
            return place, f"{name} needs the clause"
        case Kind.VACUITY:
            return place, name
        case Kind.PROBES | Kind.ACTION_PROBE:
            return f"{question.model}.probe", f"{name} is false somewhere"


def _witnesses(trace: Trace | None) -> tuple[Witness, ...]:
    """Return one witness per step: the action and its changes."""
    if trace is None:
        return ()
    found: list[Witness] = []
    before: State | None = None
    for step in trace.steps:
        changes = {} if before is None else dict(changed(before, step.state))
        shown = ", ".join(f"{place} {how}" for place, how in changes.items())
        action = step.action or "initial state"
        found.append(Witness(f"step {step.number} {action}" + (f": {shown}" if shown else ""), changes))
        before = step.state
    return tuple(found)
