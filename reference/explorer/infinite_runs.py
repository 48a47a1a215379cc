"""Judges the liveness properties of the bounded models for which TLC checks them, and reports the results."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mqproof.reference.constants import constants
from mqproof.reference.explorer.lasso import Lasso, find_lasso, lasso_text
from mqproof.reference.explorer.search import OnLevel
from mqproof.reference.explorer.state_graph import state_graph
from mqproof.reference.model import Model
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import id_of
from mqproof.spec.model_file import Kind, Models, Question

FAIR: Final = "MCFairSpec"
"""The specification of the runs whose fairness is that of the reference."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one liveness property of one bounded model."""

    question: Question
    name: str
    """The property."""
    states: int
    lasso: Lasso[Any] | None
    """The violating run; None if there is none, or if there is a problem."""
    problem: str
    """The reason why the property was not judged, in a sentence."""
    seconds: float

    @property
    def verdict(self) -> Verdict:
        if self.problem:
            return Verdict.UNKNOWN
        return Verdict.VIOLATED if self.lasso else Verdict.HELD


def fair_models(models: Models, model: Model[Any, Any], profile: str | None) -> list[Question]:
    """Return the model's runs that check liveness and must hold, with distinct constants.

    A profile without such a run gets the smallest one of the other profiles. None stands for all profiles.
    """
    fair = [
        question
        for question in models.questions.get(model.name, ())
        if question.kind is Kind.CHECK
        and question.violates is None
        and question.config.names("SPECIFICATION") == (FAIR,)
        and not any("<-" in body for body in question.config.of("CONSTANT"))
        and liveness_of(model, question)
    ]
    chosen = [question for question in fair if profile is None or profile in question.profiles]
    distinct: dict[tuple[str, ...], Question] = {}
    for question in chosen or sorted(fair, key=_size)[:1]:
        distinct.setdefault(question.config.of("CONSTANT"), question)
    return list(distinct.values())


def _size(question: Question) -> int:
    return question.states.high if question.states else 0


def liveness_of(model: Model[Any, Any], question: Question) -> list[str]:
    """Return the liveness properties that a run checks and the reference has."""
    return [name for name in question.config.names("PROPERTY") if name in model.liveness]


def judged(
    model: Model[Any, Any], question: Question, states_max: int | None, on_level: OnLevel
) -> list[Judged]:
    """Judge each liveness property of one bounded model.

    Too many states or too little memory are returned as a problem, not raised.
    """
    began = time.perf_counter()
    config = model.from_constants(constants(question.config.text()))
    names = liveness_of(model, question)
    try:
        graph = state_graph(model, config, on_level=on_level, states_max=states_max)
    except MemoryError as error:
        seconds = time.perf_counter() - began
        return [Judged(question, name, 0, None, str(error), seconds) for name in names]
    found: list[Judged] = []
    for name in names:
        lasso = find_lasso(graph, model.liveness[name](config))
        found.append(Judged(question, name, len(graph.states), lasso, "", time.perf_counter() - began))
        began = time.perf_counter()
    return found


def results(model: str, all_judged: Sequence[Judged], replay: str) -> list[Result]:
    """Return one result per property over all bounded models, with the run that violates it."""
    return [
        _result(model, name, [one for one in all_judged if one.name == name], replay)
        for name in dict.fromkeys(one.name for one in all_judged)
    ]


def _result(model: str, name: str, of_property: Sequence[Judged], replay: str) -> Result:
    verdicts = {one.verdict for one in of_property}
    worst = next(v for v in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HELD) if v in verdicts)
    return Result(
        id=id_of(model, name),
        name=name,
        layer="reference",
        verdict=worst,
        counts={"states": sum(one.states for one in of_property)},
        witnesses=tuple(Witness(lasso_text(one.lasso)) for one in of_property if one.lasso),
        detail="; ".join(one.problem for one in of_property if one.problem),
        replay=replay,
        seconds=sum(one.seconds for one in of_property),
    )


def rows(all_judged: Sequence[Judged]) -> Table:
    """Return a table with one row per bounded model and property."""
    columns = ("model", "run", "property", "verdict", "states", "seconds")
    return Table("Liveness", columns, tuple(_row(one) for one in all_judged))


def _row(one: Judged) -> tuple[str, ...]:
    question = one.question
    states = "-" if one.problem else f"{one.states}"
    return (question.model, question.name, one.name, one.verdict.value, states, f"{one.seconds:.1f}")
