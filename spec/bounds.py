"""Checks whether the bounds are large enough: each constant is grown by one, and new behaviour is reported.

Behaviour is abstracted in two ways. A kind of step is an action, a variable that it changed, and how the
variable changed: up, down, grew, emptied, ... A guard outcome is a place in an action that TLC evaluated. The
places show which conditions were true somewhere, and which branches were taken. If a larger model shows
nothing new, the bounds hide nothing that this abstraction can express. If it shows something new, the
difference should be examined.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mqproof.report.model import Table
from mqproof.spec.actions import below, leaves, load, next_of, noting, plain
from mqproof.spec.model_file import Kind, ModelFileError, Models, Question
from mqproof.spec.tlc import output, values
from mqproof.spec.tlc.config import Config
from mqproof.spec.tlc.coverage_report import Place, sections
from mqproof.spec.tlc.errors import Reason, TlcError
from mqproof.spec.tlc.graph import read_dot
from mqproof.spec.tlc.parallel import run_each
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.tlc.values import Function, ModelValue, Value

NOTES: Final = "KindNotes"
_PREFIX: Final = '<<"kind", '
_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SAMPLE_STATES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Growth:
    """One constant, increased by one step."""

    constant: str
    before: str
    after: str
    question: Question


@dataclass(frozen=True, slots=True)
class Seen:
    """The behaviour of a bounded model: number of states, kinds of steps, guard outcomes."""

    states: int
    kinds: frozenset[str]
    outcomes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A grown model, compared with all of the model's recorded runs."""

    model: str
    growth: Growth
    states: int
    """The number of states. For an unfinished run, the states and the new behaviour are those found so far.

    It is 0 if TLC had not reported a number.
    """
    kinds: tuple[str, ...]
    """New kinds of steps."""
    outcomes: tuple[str, ...]
    unfinished: str = ""
    forbidden: bool = False
    """Whether the module's ASSUME forbids growing this constant alone."""


def compare(
    models: Models, model: str, seconds_max: float, toolbox: Toolbox | None = None
) -> tuple[Comparison, ...]:
    """Grow each constant by one and compare with the combined behaviour of all of the model's ci runs.

    Raises:
        TlcError: a run as recorded gave no verdict. SyntaxProblemError: a module cannot be read.
        ModelFileError: the model has no run of the profile ci that must hold.
    """
    base = _distinct(q for q in models.questions[model] if q.kind is Kind.CHECK and "ci" in q.profiles)
    if not base:
        raise ModelFileError(f"{models.file}: [{model}]: no run of the profile ci that must hold")
    small = [each for each in base if each.states and each.states.high <= _SAMPLE_STATES]
    growths = furthest(base)
    questions = [*base, *(growth.question for growth in growths)]
    shapes = _sampled(models, (small or base[:1])[-1], _ids(questions), toolbox)
    jobs = [_job(models, question, shapes) for question in questions]
    # The runs compared with must finish; the larger runs need not.
    jobs[len(base) :] = [replace(job, seconds_max=seconds_max) for job in jobs[len(base) :]]
    answers = list(run_each(jobs, toolbox))
    known: list[Seen] = []
    for question, answer in zip(base, answers, strict=False):
        if isinstance(answer, TlcError):
            raise TlcError(answer.reason, f"{model} {question.name}: {answer}", answer.text)
        known.append(seen(jobs[len(known)], answer.text, answer.distinct))
    kinds = frozenset().union(*(each.kinds for each in known))
    outcomes = frozenset().union(*(each.outcomes for each in known))
    return tuple(
        _compared(model, growth, job, answer, kinds, outcomes)
        for growth, job, answer in zip(growths, jobs[len(base) :], answers[len(base) :], strict=True)
    )


def furthest(questions: Sequence[Question]) -> list[Growth]:
    """Return, for each constant, the growth beyond the largest value that it has in these runs.

    If several runs have that value, the run that excludes the fewest actions and properties is grown. Among
    equals, the first one is taken, which is the smallest.
    """
    found: dict[str, Growth] = {}
    candidates = sorted(questions, key=lambda question: len(question.never))
    for growth in (growth for question in candidates for growth in grown(question)):
        known = found.get(growth.constant)
        if known is None or _extent(growth.before) > _extent(known.before):
            found[growth.constant] = growth
    return list(found.values())


def _extent(text: str) -> int:
    value = values.parse(text)
    return len(value) if isinstance(value, frozenset) else int(str(value))


def grown(question: Question) -> Iterator[Growth]:
    """Yield the question with one constant increased, for each constant that can grow.

    Numbers can grow, and sets of numbered names.
    """
    sections_of = question.config.sections
    for place, (section, body) in enumerate(sections_of):
        if section != "CONSTANT":
            continue
        for line in body.splitlines():
            name, equals, text = line.partition("=")
            if not equals or "<-" in line or (larger := _larger(text.strip())) is None:
                continue
            changed = body.replace(line, f"{name}= {larger}")
            config = Config((*sections_of[:place], (section, changed), *sections_of[place + 1 :]))
            named = replace(question, name=f"{question.name} {name.strip()}", config=config)
            yield Growth(name.strip(), text.strip(), larger, named)


def _larger(text: str) -> str | None:
    if re.fullmatch(r"\d+", text):
        return str(int(text) + 1)
    value = values.parse(text)
    if not isinstance(value, frozenset) or not value:
        return None
    if all(isinstance(each, int) and not isinstance(each, bool) for each in value):
        return values.show(value | {max(int(str(each)) for each in value) + 1})
    names = [each.name if isinstance(each, ModelValue) else each for each in value]
    following = _following(sorted(name for name in names if isinstance(name, str)))
    if following is None:
        return None
    like = next(iter(value))
    return values.show(value | {ModelValue(following) if isinstance(like, ModelValue) else following})


def _following(names: Sequence[str]) -> str | None:
    """Return the name that follows: n3 after n1, n2; c after a, b. None for words."""
    found = [re.fullmatch(r"(\D*)(\d+)", name) for name in names]
    numbered = [match for match in found if match]
    if names and len(numbered) == len(names) and len({match[1] for match in numbered}) == 1:
        return f"{numbered[0][1]}{max(int(match[2]) for match in numbered) + 1}"
    if names and all(len(name) == 1 for name in names) and max(names) < "z":
        return chr(ord(max(names)) + 1)
    return None


def seen(job: Job, text: str, states: int) -> Seen:
    """Return the behaviour that a run of `_job` reported; up to its end if it was not finished."""
    lines = (line for line in text.splitlines() if line.startswith(_PREFIX))
    kinds = frozenset(" ".join(_TEXT.findall(line)[1:]).replace("\\", "") for line in lines)
    # TLC reports an expression either under its action or under the next-state relation as a whole.
    outcomes = {
        f"{expression.place.module}: {_source(job, expression.place)}"
        for section in sections(output.read(text))
        if section.kind == "action"
        for expression in section.expressions
        if expression.evaluated and expression.place.module in job.sources
    }
    return Seen(states, kinds, frozenset(outcome for outcome in outcomes if "NotedKind" not in outcome))


def _source(job: Job, place: Place) -> str:
    """Return the first line of the expression; "NotedKind" if `noting` added it to the model."""
    if place.module == NOTES:
        return "NotedKind"
    line = job.sources[place.module].splitlines()[place.line - 1]
    noted = line.find("NotedKind")
    if 0 <= noted < place.column:
        return "NotedKind"
    return line[place.column - 1 : place.column_end if place.line == place.line_end else None].strip()


def _compared(
    model: str,
    growth: Growth,
    job: Job,
    answer: Outcome | TlcError,
    kinds: frozenset[str],
    outcomes: frozenset[str],
) -> Comparison:
    unfinished = str(answer) if isinstance(answer, TlcError) else ""
    found = seen(job, answer.text, _so_far(answer) if isinstance(answer, TlcError) else answer.distinct)
    new_kinds, new_outcomes = sorted(found.kinds - kinds), sorted(found.outcomes - outcomes)
    forbidden = isinstance(answer, TlcError) and answer.reason is Reason.ASSUMPTION
    return Comparison(
        model, growth, found.states, tuple(new_kinds), tuple(new_outcomes), unfinished, forbidden
    )


def _so_far(error: TlcError) -> int:
    reported = re.findall(r"([\d,]+) distinct states found", error.text)
    return int(reported[-1].replace(",", "")) if reported else 0


def table(comparisons: Iterable[Comparison]) -> Table:
    """Return the table of results, with one row for each constant that was increased."""
    columns = ("model", "run", "constant", "from", "to", "states", "new kinds", "new outcomes", "the first")
    return Table("Bounds grown by one", columns, tuple(map(_row, comparisons)))


def _size(found: Comparison) -> str:
    if found.forbidden:
        return "forbidden by ASSUME"
    if not found.states:
        return "not finished"
    return f"{found.states} so far" if found.unfinished else str(found.states)


def _row(found: Comparison) -> tuple[str, ...]:
    run = found.growth.question.name.partition(" ")[0]
    first = "; ".join([*found.kinds[:3], *found.outcomes[:2]])
    grown_ = (found.growth.constant, found.growth.before, found.growth.after)
    return (found.model, run, *grown_, _size(found), str(len(found.kinds)), str(len(found.outcomes)), first)


def _distinct(questions: Iterable[Question]) -> list[Question]:
    """Return one question for each choice of constants, the smallest first."""
    found: dict[tuple[str, ...], Question] = {}
    for question in questions:
        if question.violates is None:
            found.setdefault(question.config.of("CONSTANT"), question)
    return sorted(found.values(), key=lambda question: question.states.high if question.states else 0)


def _job(models: Models, question: Question, shapes: dict[str, str]) -> Job:
    modules = load(question.module, models.libraries)
    actions = leaves(modules, next_of(question, modules))
    names = [plain(action, modules) for action in actions]

    def note(number: int, module: str) -> str:
        variables = [name for each in below(modules, module) for name in modules[each].variables]
        changes = ", ".join(f'<<"{name}", {_how(shapes[name], name)}>>' for name in variables)
        return f'NotedKind("{names[number - 1]}", {{{changes}}})'

    sources = noting(modules, actions, NOTES, note)
    config = question.config.without("INVARIANT", "PROPERTY")
    return Job(
        question.module,
        config.text(),
        models.libraries,
        {**sources, NOTES: _NOTES_MODULE},
        coverage=True,
        heap_mib=question.heap_mib,
        seconds_max=question.seconds_max,
    )


_NOTES_MODULE: Final = f"""---- MODULE {NOTES} ----
LOCAL INSTANCE TLC
LOCAL INSTANCE FiniteSets
ASSUME TLCSet(1, {{}})
HowText(value) == ToString(value)
NotedKind(action, changes) ==
    LET new == {{<<action, c[1], c[2]>> : c \\in {{d \\in changes : d[2] # "same"}}}} \\ TLCGet(1)
    IN  IF new = {{}}
        THEN TRUE
        ELSE TLCSet(1, TLCGet(1) \\cup new) /\\ \\A k \\in new : PrintT(<<"kind", k[1], k[2], k[3]>>)
====
"""


# The following functions build a TLA+ expression, a string, for how a value changed. The shape of each
# variable's values is taken from the states of a small run, because TLA+ has no types.


@dataclass(frozen=True, slots=True)
class _Names:
    ids: frozenset[str]
    """Names of nodes, messages, ...: they are interchangeable."""
    keys: frozenset[str]
    """Keys of functions that are also values elsewhere; names of record fields are not included."""


def _ids(questions: Iterable[Question]) -> frozenset[str]:
    """Return the names of nodes, messages, ..., including the grown ones.

    A third node makes no new kind of change.
    """
    bodies = (body for question in questions for body in question.config.of("CONSTANT"))
    return frozenset(word for body in bodies for word in re.findall(r'"(\w+)"', body))


def _sampled(
    models: Models, question: Question, ids: frozenset[str], toolbox: Toolbox | None
) -> dict[str, str]:
    """Map each variable to the TLA+ expression for how OLD became NEW."""
    asked = question.config.without("INVARIANT", "PROPERTY").text()
    with tempfile.TemporaryDirectory(prefix="mqproof-bounds-") as name:
        dump = Path(name) / "graph.dot"
        run(Job(question.module, asked, models.libraries, dump=dump, brief=True), toolbox)
        graph = read_dot(dump.read_text(encoding="utf-8"))
    held: dict[str, set[Value]] = {}
    for state in graph.states:
        for variable, value in state.items():
            held.setdefault(str(variable), set()).add(value)
    names = _Names(ids, ids | {word for found in held.values() for value in found for word in _words(value)})
    return {name: _shape(found, names, 0) for name, found in held.items()}


def _words(value: Value) -> Iterator[str]:
    """Yield the strings that occur in a value, except the keys of functions."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Function):
        yield from (word for inner in value.values() for word in _words(inner))
    elif isinstance(value, tuple | frozenset):
        yield from (word for inner in value for word in _words(inner))


def _how(shape: str, variable: str) -> str:
    return f'IF {variable}\' = {variable} THEN "same" ELSE ' + shape.replace("OLD", variable).replace(
        "NEW", f"{variable}'"
    )


def _shape(found: Iterable[Value], names: _Names, depth: int) -> str:
    sample = list(found)
    if all(isinstance(value, bool) for value in sample):
        return 'IF NEW THEN "true" ELSE "false"'
    if all(isinstance(value, int) and not isinstance(value, bool) for value in sample):
        return 'IF NEW = 0 THEN "reset" ELSE IF NEW > OLD THEN "up" ELSE "down"'
    if all(isinstance(value, str) for value in sample):
        known = ", ".join(f'"{each}"' for each in sorted(names.ids))
        return f'IF NEW \\in {{{known}}} THEN "to another" ELSE NEW'
    if all(isinstance(value, frozenset) for value in sample):
        grew = 'IF OLD \\subseteq NEW THEN "grew" ELSE IF NEW \\subseteq OLD THEN "shrank" ELSE "changed"'
        return f'IF NEW = {{}} THEN "emptied" ELSE {grew}'
    if all(isinstance(value, tuple) for value in sample):
        longer = (
            'IF Len(NEW) > Len(OLD) THEN "longer" ELSE IF Len(NEW) < Len(OLD) THEN "shorter" ELSE "changed"'
        )
        return f'IF NEW = <<>> THEN "emptied" ELSE {longer}'
    functions = [value for value in sample if isinstance(value, Function)]
    if len(functions) == len(sample):
        return _shape_of_functions(functions, names, depth)
    return '"changed"'


def _shape_of_functions(functions: list[Function], names: _Names, depth: int) -> str:
    fields = {frozenset(map(str, function)) for function in functions}
    if len(fields) != 1:
        return '"changed"'
    keys = sorted(next(iter(fields)))
    if set(keys) <= names.keys or not all(isinstance(key, str) for function in functions for key in function):
        key = f"k{depth}"
        inner = _inner([value for f in functions for value in f.values()], names, depth, f"[{key}]")
        return f"HowText({{{inner} : {key} \\in {{{key}x \\in DOMAIN OLD : OLD[{key}x] # NEW[{key}x]}}}})"
    parts = []
    for field in keys:
        how = _inner(
            [value for f in functions for name, value in f.items() if name == field],
            names,
            depth,
            f".{field}",
        )
        parts.append(f'(IF OLD.{field} = NEW.{field} THEN {{}} ELSE {{<<"{field}", {how}>>}})')
    changed = " \\cup ".join(parts)
    return f"HowText({changed})"


def _inner(found: Iterable[Value], names: _Names, depth: int, place: str) -> str:
    return _shape(found, names, depth + 1).replace("OLD", f"OLD{place}").replace("NEW", f"NEW{place}")
