"""Decides what detects a mutant: TLC's properties, or the state graphs that `mqproof equiv` compares.

A mutant that violates a property of its runs is not compared by its graph: the unchanged model keeps the
property in every state, so the graphs differ. Each other mutant is compared state by state and step by step
with the unchanged graph, which equals the reference's (`mqproof equiv` shows that). If they differ, the
witnesses are checked: the actions that must be taken and the probes that must be false somewhere.
"""

import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final

from mqproof.spec.model_file import Question
from mqproof.spec.mutation.operators import Mutant
from mqproof.spec.tlc.errors import UNDECIDED, Reason, TlcError
from mqproof.spec.tlc.graph import Ground, read_dot
from mqproof.spec.tlc.run import Job, Outcome, run
from mqproof.spec.tlc.toolbox import Toolbox
from mqproof.spec.vacuity import plan

GROWTH_MAX: Final = 3
"""A mutant with more than this multiple of the recorded states is stopped: its size alone is a difference."""

_NODE: Final = re.compile(rb'^(-?\d+) \[label="(?:[^"\\]|\\.)*"(?:,style = filled)?', re.MULTILINE)
_EDGE: Final = re.compile(rb'^(-?\d+) -> (-?\d+) \[label="\w*"', re.MULTILINE)


class Noticed(StrEnum):
    """How a mutant was detected."""

    PROPERTY = "property"  # an invariant or another property is violated
    EVALUATION = "evaluation"  # TLC cannot evaluate it, and reports where
    WITNESS = "witness"  # an action is never taken any more, or a situation that must happen does not
    EQUIV = "equiv"  # only the comparison of the graphs detects it
    LABELS = "labels"  # equiv detects it, but the behaviours are the same: names, or idle steps
    NOT = "not"  # not detected: within the bounds the graph is the same
    UNDECIDED = "undecided"  # undecided within the time limit
    UNPARSED = "unparsed"  # not valid TLA+: a defect of the operator that made it


@dataclass(frozen=True, slots=True)
class Judgement:
    mutant: str
    noticed: Noticed
    by: str
    """The violated property, or the difference of the graph."""
    run: str
    """The bounded model in which the mutant was detected; otherwise the last one examined."""


@dataclass(frozen=True, slots=True)
class Space:
    """A bounded model whose graph is compared."""

    name: str
    module: str
    ground: Ground
    next_name: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A profile's runs that must hold, and their graphs, the smallest first."""

    runs: tuple[Question, ...]
    spaces: tuple[Space, ...]
    witnesses: tuple[Question, ...] = ()
    """Runs whose probes must be falsified and whose actions must be taken."""


@dataclass(frozen=True)
class Subject:
    """A model to be mutated, with the stages of its mutants.

    Each stage gets the mutants the last one left undetected.
    """

    module: str
    """The module that is mutated; its file is in the first of the libraries."""
    stages: tuple[Stage, ...]
    libraries: tuple[Path, ...]
    shared: frozenset[str] = frozenset()
    """Operators that the properties use too.

    For these, a violated property does not prove that the graph differs.
    """

    @cached_property
    def text(self) -> str:
        return (self.libraries[0] / f"{self.module}.tla").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Picture:
    """A dumped graph: one number for each state and each labelled step."""

    states: frozenset[int]
    steps: frozenset[int]
    """The steps with their labels."""
    moves: frozenset[int]
    """The steps without labels, except those that change nothing."""


class Judge:
    """Judges the mutants of one subject; may be used from any thread."""

    def __init__(
        self,
        subject: Subject,
        toolbox: Toolbox | None = None,
        abandoned: threading.Event | None = None,
        seconds_max: float = 300,
    ) -> None:
        self._subject = subject
        self._toolbox = toolbox
        self._abandoned = abandoned
        self._seconds_max = seconds_max
        self._pictures: dict[str, _Picture] = {}
        self._witnessed: dict[str, frozenset[str]] = {}
        self._drawing = threading.Lock()

    def judge(self, mutant: Mutant, stage: Stage) -> Judgement:
        """Judge a mutant in one stage. An undetected mutant is to be judged in the next stage.

        Raises:
            TlcError: TLC is missing or crashed.
        """
        try:
            return self._judge(mutant, stage)
        except TlcError as error:
            if error.reason in (Reason.PARSE, Reason.CONFIG):
                return Judgement(mutant.id, Noticed.UNPARSED, str(error), "")
            if error.reason in UNDECIDED:
                return Judgement(mutant.id, Noticed.UNDECIDED, str(error), "")
            raise

    def _judge(self, mutant: Mutant, stage: Stage) -> Judgement:
        """Check the runs first, the smallest before the others: they are quick and often find a violation."""
        broken = self._broken(mutant, stage.runs)
        if broken is not None and mutant.definition not in self._subject.shared:
            return broken
        unnoticed = Judgement(mutant.id, Noticed.NOT, "", stage.runs[-1].name)
        if not stage.spaces:
            return broken or self._unwitnessed(mutant, stage) or unnoticed
        differs = self._differs(mutant, stage)
        if differs is None:
            return broken or unnoticed
        if differs.noticed is Noticed.LABELS:
            return broken or differs
        return broken or self._unwitnessed(mutant, stage) or differs

    def _broken(self, mutant: Mutant, runs: Sequence[Question]) -> Judgement | None:
        for question in runs:
            try:
                outcome = self._run(_bounded(question, mutant, self._subject))
            except TlcError as error:
                if error.reason not in (Reason.EVALUATION, Reason.ASSUMPTION):
                    raise
                return Judgement(mutant.id, Noticed.EVALUATION, str(error), question.name)
            if outcome.violated is not None:
                return Judgement(mutant.id, Noticed.PROPERTY, outcome.violated, question.name)
        return None

    def _differs(self, mutant: Mutant, stage: Stage) -> Judgement | None:
        for space in stage.spaces:
            noticed, how = self._difference(mutant, space)
            if how:
                return Judgement(mutant.id, noticed, how, space.name)
        return None

    def _unwitnessed(self, mutant: Mutant, stage: Stage) -> Judgement | None:
        for question in stage.witnesses:
            with self._drawing:
                if question.name not in self._witnessed:
                    self._witnessed[question.name] = self._seen(question, self._subject.text)
            lost = sorted(self._witnessed[question.name] - self._seen(question, mutant.text))
            if lost:
                return Judgement(mutant.id, Noticed.WITNESS, ", ".join(lost), question.name)
        return None

    def _seen(self, question: Question, text: str) -> frozenset[str]:
        """Return the actions that are taken and the probes that are false somewhere."""
        with tempfile.TemporaryDirectory(prefix="mqproof-mutant-") as name:
            (Path(name) / f"{self._subject.module}.tla").write_text(text, encoding="utf-8")
            watched = plan(question, (Path(name), *self._subject.libraries))
            return watched.seen(self._run(watched.job))

    def _difference(self, mutant: Mutant, space: Space) -> tuple[Noticed, str]:
        sound = self._sound(space)
        try:
            broken = self._draw(space, {self._subject.module: mutant.text}, len(sound.states))
        except TlcError as error:
            if error.reason is not Reason.EVALUATION:
                raise
            return Noticed.EQUIV, "it cannot be evaluated"
        if len(broken.states) != len(sound.states):
            more = len(broken.states) - len(sound.states)
            return Noticed.EQUIV, f"{abs(more)} states {'more' if more > 0 else 'fewer'}"
        if broken.states != sound.states:
            return Noticed.EQUIV, self._other_states(mutant, space) or self._other_next(mutant, space, broken)
        if broken.steps != sound.steps:
            more, fewer = len(broken.steps - sound.steps), len(sound.steps - broken.steps)
            noticed = Noticed.EQUIV if broken.moves != sound.moves else Noticed.LABELS
            return noticed, f"{more} steps more, {fewer} fewer"
        return Noticed.EQUIV, self._other_next(mutant, space, broken)

    def _other_states(self, mutant: Mutant, space: Space) -> str:
        """Compare the states by content. TLC's numbers and its order of printing may differ between runs."""
        sound = read_dot(self._dump(space, {}, 0).decode())
        broken = read_dot(self._dump(space, {self._subject.module: mutant.text}, 0).decode())
        if sound.states != broken.states:
            return f"{len(set(broken.states) - set(sound.states))} other states"
        if (sound.initial, sound.edges) != (broken.initial, broken.edges):
            more, fewer = len(broken.edges - sound.edges), len(sound.edges - broken.edges)
            return f"{more} steps more, {fewer} fewer"
        return ""

    def _other_next(self, mutant: Mutant, space: Space, broken: _Picture) -> str:
        """Check that the next-state relation includes every ground action.

        It may lack one even if each ground action is unchanged.
        """
        asked = replace(space, ground=space.ground.stepping_by(space.next_name))
        taken = self._draw(asked, {self._subject.module: mutant.text}, len(broken.states))
        return "" if taken.moves == broken.moves else f"{space.next_name} is not the union of the actions"

    def _sound(self, space: Space) -> _Picture:
        with self._drawing:
            if space.name not in self._pictures:
                self._pictures[space.name] = self._draw(space, {}, 0)
            return self._pictures[space.name]

    def _draw(self, space: Space, sources: Mapping[str, str], states: int) -> _Picture:
        text = self._dump(space, sources, states)
        return _Picture(
            frozenset(hash(found[0]) for found in _NODE.finditer(text)),
            frozenset(hash(found[0]) for found in _EDGE.finditer(text)),
            frozenset(hash(found.groups()) for found in _EDGE.finditer(text) if found[1] != found[2]),
        )

    def _dump(self, space: Space, sources: Mapping[str, str], states: int) -> bytes:
        """Return the graph as TLC dumps it, up to this number of states; 0 for all of it."""
        made = space.ground
        source, config = made.source, made.config
        if states:
            source = _with_limit(source, states)
            config = config.with_section("INVARIANT", "WithinLimit")
        with tempfile.TemporaryDirectory(prefix="mqproof-graph-") as name:
            dot = Path(name) / "graph.dot"
            job = Job(
                made.module,
                config.text(),
                self._subject.libraries,
                {**sources, made.module: source},
                dump=dot,
                seconds_max=self._seconds_max,
                brief=True,
            )
            run(job, self._toolbox, self._abandoned)
            return dot.read_bytes()

    def _run(self, job: Job) -> Outcome:
        return run(replace(job, seconds_max=self._seconds_max), self._toolbox, self._abandoned)


def _bounded(question: Question, mutant: Mutant, subject: Subject) -> Job:
    """Return the question for the mutant. TLC stops when the mutant has grown far beyond the model."""
    module = f"{question.module}Mutant"
    base = f"---- MODULE {module} ----\nEXTENDS {question.module}\n====\n"
    states = question.states.high * GROWTH_MAX if question.states else 0
    return Job(
        module,
        question.config.with_section("INVARIANT", "WithinLimit").text(),
        subject.libraries,
        {subject.module: mutant.text, module: _with_limit(base, states)},
        deadlock=question.deadlock,
        brief=True,
    )


def _with_limit(source: str, states: int) -> str:
    """Return the module with an invariant that ends the run without a verdict when there are more states."""
    lines = source.removesuffix("====\n").splitlines()
    lines[1] += ", TLC"
    limit = f'WithinLimit == TLCGet("distinct") <= {states} \\/ TLCSet("exit", TRUE)'
    return "\n".join([*lines, limit, "===="]) + "\n"
