"""What `mqproof mutate` needs of the reference: the table of ground actions, and so the graphs to compare."""

from collections import defaultdict
from typing import Any

from reference.equiv import constants
from reference.model import Model
from spec.model_file import Kind, Models, Question
from spec.mutation.judge import Space, Stage, Subject
from spec.mutation.operators import reached
from spec.syntax import parse
from spec.tlc.graph import ground

NEXT = "MCNext"


def subject(models: Models, model: Model[Any, Any], profiles: tuple[str, ...]) -> Subject:
    """The model with a stage for each of these profiles."""
    checks = [
        question
        for question in models.questions[model.name]
        if question.kind is Kind.CHECK and question.violates is None
    ]
    checks.sort(key=lambda question: question.states.high if question.states else 0)
    stages = [tuple(question for question in checks if profile in question.profiles) for profile in profiles]
    witnesses = tuple(q for q in models.questions[model.name] if q.kind is Kind.PROBES)
    text = (models.libraries[0] / f"{model.name}.tla").read_text(encoding="utf-8")
    properties = {name for question in checks for name in question.config.properties}
    return Subject(
        module=model.name,
        stages=tuple(Stage(runs, _spaces(model, runs), witnesses) for runs in stages),
        libraries=models.libraries,
        shared=frozenset(reached(parse(text), *properties)),
    )


def roots(models: Models, model: str) -> tuple[str, ...]:
    """The operators of the model's module that the bounded next-state relation names."""
    (module,) = {question.module for question in models.questions[model] if question.kind is Kind.CHECK}
    bounded = parse((models.libraries[0] / f"{module}.tla").read_text(encoding="utf-8"))
    used = (bounded.source(bounded.definitions[name].body) for name in reached(bounded, NEXT))
    words = {word for source in used for word in _words(source)}
    text = (models.libraries[0] / f"{model}.tla").read_text(encoding="utf-8")
    return tuple(name for name in parse(text).definitions if name in words)


def _words(source: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in source).split()


def _spaces(model: Model[Any, Any], runs: tuple[Question, ...]) -> tuple[Space, ...]:
    """A graph for each choice of constants."""
    distinct: dict[tuple[str, ...], Question] = {}
    for question in runs:
        distinct.setdefault(question.config.of("CONSTANT"), question)
    return tuple(_space(model, question) for question in distinct.values())


def _space(model: Model[Any, Any], question: Question) -> Space:
    text = question.config.text()
    config = model.from_constants(constants(text))
    actions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for name, action in model.actions.items():
        for parameters in action.domain(config):
            operator, arguments = model.operator(config, name, parameters)
            actions[operator].append(arguments)
    return Space(question.name, question.module, ground(question.module, text, actions), NEXT)
