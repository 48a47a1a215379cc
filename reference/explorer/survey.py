"""Explores the bounded models of models.toml, and turns the findings into results and tables."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mqproof.reference.constants import constants
from mqproof.reference.explorer.search import OnLevel, path_text
from mqproof.reference.explorer.summary import Summary
from mqproof.reference.model import Model
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import id_of
from mqproof.spec.model_file import Kind, Models, Question

LAYER: Final = "reference"

_REDUCTIONS: Final = ("SYMMETRY", "VIEW", "CONSTRAINT", "ACTION_CONSTRAINT")
"""Sections under which TLC counts fewer states than exist."""


class Explore(Protocol):
    """One of the explorers: with processes, on Spark, or with a bounded memory."""

    def __call__(
        self, model: Model[Any, Any], config: Any, *, on_level: OnLevel | None, states_max: int | None
    ) -> Summary[Any]: ...


@dataclass(frozen=True, slots=True)
class Explored:
    """The result of exploring one bounded model."""

    question: Question
    summary: Summary[Any] | None
    """The result; None if the model was too large."""
    problem: str
    """The reason why there is no summary, in a sentence."""
    seconds: float

    @property
    def verdict(self) -> Verdict:
        if self.summary is None:
            return Verdict.UNKNOWN
        return Verdict.VIOLATED if self.summary.violation else Verdict.HELD


def bounded_models(models: Models, model: str, profile: str) -> list[Question]:
    """Return the model's runs with distinct constants; runs that only check other properties are left out."""
    distinct: dict[tuple[str, ...], Question] = {}
    for question in models.questions.get(model, ()):
        if question.kind is Kind.CHECK and profile in question.profiles:
            distinct.setdefault(question.config.of("CONSTANT"), question)
    return list(distinct.values())


def explored(
    model: Model[Any, Any], question: Question, explore: Explore, states_max: int | None, on_level: OnLevel
) -> Explored:
    """Explore one bounded model.

    Too many states or too little memory are returned as a problem, not raised.
    """
    config = model.from_constants(constants(question.config.text()))
    began = time.perf_counter()
    try:
        summary = explore(model, config, on_level=on_level, states_max=states_max)
    except MemoryError as error:
        return Explored(question, None, str(error), time.perf_counter() - began)
    return Explored(question, summary, "", time.perf_counter() - began)


def results(model: Model[Any, Any], all_explored: Sequence[Explored], which: str) -> list[Result]:
    """Return one result per bounded model for its size, and one per invariant over all of them.

    `which` holds the options that select these bounded models again.
    """
    replay = f"mqproof explore {model.name} {which}"
    sizes = [_size(one, replay) for one in all_explored]
    invariants = (*model.invariants, *model.step_invariants)
    return sizes + [_invariant(model.name, name, all_explored, replay) for name in invariants]


def _size(one: Explored, replay: str) -> Result:
    question, summary = one.question, one.summary
    counts: dict[str, int] = {}
    verdict, detail = one.verdict, one.problem
    if summary is not None:
        counts = {"states": summary.states, "edges": summary.edges, "depth": summary.depth}
        if summary.violation is not None:
            verdict, detail = Verdict.UNKNOWN, f"stopped when {summary.violation.invariant} was violated"
        elif off := _off(question, summary):
            verdict, detail = Verdict.VIOLATED, off
    return Result(
        id=f"{question.model}.{question.name}",
        name="RecordedSize",
        layer=LAYER,
        verdict=verdict,
        counts=counts,
        detail=detail,
        replay=replay,
        seconds=one.seconds,
    )


def _off(question: Question, summary: Summary[Any]) -> str:
    """Describe how the size differs from the one recorded for TLC's runs; empty if it does not."""
    if any(question.config.of(section) for section in _REDUCTIONS):
        return ""
    counted = {"states": summary.states, "depth": summary.depth}
    recorded = {"states": question.states, "depth": question.depth}
    return "; ".join(
        f"{number} {what}, {recorded[what]} recorded"
        for what, number in counted.items()
        if (band := recorded[what]) is not None and number not in band
    )


def _invariant(model: str, name: str, all_explored: Sequence[Explored], replay: str) -> Result:
    summaries = [one.summary for one in all_explored if one.summary is not None]
    violations = [s.violation for s in summaries if s.violation is not None]
    broken = [violation for violation in violations if violation.invariant == name]
    whole = len(summaries) == len(all_explored) and not violations
    verdict = Verdict.HELD if whole else Verdict.UNKNOWN
    return Result(
        id=id_of(model, name),
        name=name,
        layer=LAYER,
        verdict=Verdict.VIOLATED if broken else verdict,
        counts={"states": sum(summary.states for summary in summaries)},
        witnesses=tuple(Witness(path_text(violation.path)) for violation in broken),
        detail="" if whole or broken else "not all states were explored",
        replay=replay,
    )


def rows(all_explored: Sequence[Explored]) -> Table:
    """Return a table with one row per bounded model."""
    columns = ("model", "run", "verdict", "states", "edges", "depth", "seconds", "states/s", "bytes/state")
    return Table("Explored", columns, tuple(_row(one) for one in all_explored))


def _row(one: Explored) -> tuple[str, ...]:
    head = (one.question.model, one.question.name, one.verdict.value)
    summary = one.summary
    if summary is None:
        return (*head, "-", "-", "-", f"{one.seconds:.1f}", "-", "-")
    memory = "-" if summary.memory_bytes is None else f"{summary.memory_bytes / summary.states:.0f}"
    rate = f"{summary.states / one.seconds:.0f}"
    return (
        *head,
        *(f"{number}" for number in (summary.states, summary.edges, summary.depth)),
        *(f"{one.seconds:.1f}", rate, memory),
    )


def fingerprints(all_explored: Sequence[Explored]) -> Table | None:
    """Return what it means that states were identified by 64-bit fingerprints; None if they were not."""
    columns = ("model", "run", "states", "probability that fingerprints collided", "MiB on disk")
    rows = [
        (
            *(one.question.model, one.question.name, f"{one.summary.states}"),
            *(f"{one.summary.collision:.1e}", f"{(one.summary.disk_bytes or 0) / 2**20:.1f}"),
        )
        for one in all_explored
        if one.summary is not None and one.summary.collision is not None
    ]
    return Table("Fingerprints", columns, tuple(rows)) if rows else None


def steps_taken(all_explored: Sequence[Explored]) -> Table:
    """Return how often each action was taken.

    A model with an action that is never taken shows less than it seems to.
    """
    rows = [
        (one.question.model, one.question.name, action, f"{count}")
        for one in all_explored
        if one.summary is not None
        for action, count in one.summary.taken.items()
    ]
    return Table("Steps by action", ("model", "run", "action", "steps"), tuple(rows))
