"""The reference's part of `mqproof mutate`: the ground actions of a model, and so the graphs to compare."""

from collections import defaultdict
from typing import Any, Final

from mqproof.reference.constants import constants
from mqproof.reference.model import Model
from mqproof.spec.model_file import Kind, Models, Question
from mqproof.spec.mutation.judge import Space, Stage, Subject
from mqproof.spec.mutation.operators import reached
from mqproof.spec.syntax import parse
from mqproof.spec.tlc.graph import ground

NEXT: Final = "MCNext"
GRAPH_MAX: Final = 100_000
"""The number of states of the largest graph that is compared for each mutant.

Larger graphs are left to `mqproof equiv`.
"""


def subject(models: Models, model: Model[Any, Any], profiles: tuple[str, ...]) -> Subject:
    """Return the model with one stage per profile; each graph is compared in its first stage only."""
    checks = [
        question
        for question in models.questions[model.name]
        if question.kind is Kind.CHECK and question.violates is None
    ]
    checks.sort(key=lambda question: question.states.high if question.states else 0)
    drawn: set[tuple[str, ...]] = set()
    stages: list[tuple[tuple[Question, ...], tuple[Question, ...]]] = []
    for profile in profiles:
        runs = tuple(question for question in checks if profile in question.profiles)
        graphs = {
            q.config.of("CONSTANT"): q for q in reversed(runs) if q.states and q.states.high <= GRAPH_MAX
        }
        fresh = tuple(question for constants_, question in graphs.items() if constants_ not in drawn)
        drawn |= set(graphs)
        stages.append((runs, fresh[::-1]))
    witnesses = tuple(q for q in models.questions[model.name] if q.kind is Kind.PROBES)
    text = (models.libraries[0] / f"{model.name}.tla").read_text(encoding="utf-8")
    properties = {name for question in checks for name in question.config.properties}
    return Subject(
        module=model.name,
        stages=tuple(
            Stage(runs, tuple(_space(model, question) for question in graphs), witnesses)
            for runs, graphs in stages
        ),
        libraries=models.libraries,
        shared=frozenset(reached(parse(text), *properties, enabled=False)),
    )


def roots(models: Models, model: str) -> tuple[str, ...]:
    """Return the operators of the model's module that the bounded next-state relation names."""
    (module,) = {question.module for question in models.questions[model] if question.kind is Kind.CHECK}
    bounded = parse((models.libraries[0] / f"{module}.tla").read_text(encoding="utf-8"))
    used = (bounded.source(bounded.definitions[name].body) for name in reached(bounded, NEXT))
    words = {word for source in used for word in _words(source)}
    text = (models.libraries[0] / f"{model}.tla").read_text(encoding="utf-8")
    return tuple(name for name in parse(text).definitions if name in words)


def _words(source: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in source).split()


def _space(model: Model[Any, Any], question: Question) -> Space:
    text = question.config.text()
    config = model.from_constants(constants(text))
    actions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for name, action in model.actions.items():
        for parameters in action.domain(config):
            operator, arguments = model.operator(config, name, parameters)
            actions[operator].append(arguments)
    return Space(question.name, question.module, ground(question.module, text, actions), NEXT)
