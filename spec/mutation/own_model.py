"""Support of `mqproof mutate --models` for a model that has no reference model in Python.

Its mutants are judged by the properties and the probes of its runs. State graphs are not compared: that needs
the table of ground actions, which comes from the reference.
"""

import re
from typing import Final

from mqproof.spec.actions import load, next_of
from mqproof.spec.model_file import Kind, ModelFileError, Models
from mqproof.spec.mutation.judge import Stage, Subject
from mqproof.spec.mutation.operators import reached
from mqproof.spec.syntax import parse

_WORD: Final = re.compile(r"\w+")


def subject(models: Models, model: str, profiles: tuple[str, ...]) -> Subject:
    """Return the model with one stage for each profile.

    Raises:
        ModelFileError: a profile has no run of the model that must hold. OSError: a module is missing.
    """
    checks = [q for q in models.questions[model] if q.kind is Kind.CHECK and q.violates is None]
    checks.sort(key=lambda question: question.states.high if question.states else 0)
    stages = []
    for profile in profiles:
        runs = tuple(question for question in checks if profile in question.profiles)
        if not runs:
            raise ModelFileError(f"{models.file}: [{model}]: no run that must hold has the profile {profile}")
        stages.append(Stage(runs, (), tuple(q for q in models.questions[model] if q.kind is Kind.PROBES)))
    return Subject(_module(models, model), tuple(stages), models.libraries)


def roots(models: Models, model: str) -> tuple[str, ...]:
    """Return the operators of the mutated module that the next-state relations of the runs use.

    Raises:
        SyntaxProblemError: a module is not in the TLA+ that the parser knows.
    """
    name = _module(models, model)
    mutated = parse((models.libraries[0] / f"{name}.tla").read_text(encoding="utf-8"))
    words: set[str] = set()
    for question in models.questions[model]:
        if question.kind is not Kind.CHECK:
            continue
        modules = load(question.module, models.libraries)
        next_name = next_of(question, modules)
        words.add(next_name)
        for module in modules.values():
            for each in reached(module, next_name):
                words |= set(_WORD.findall(module.source(module.definitions[each].body)))
    return tuple(each for each in mutated.definitions if each in words)


def _module(models: Models, model: str) -> str:
    """Return the module to mutate: the one named like the model, else the one that TLC checks.

    A bounded model is in a module of its own, which extends the module named like the model.
    """
    if (models.libraries[0] / f"{model}.tla").is_file():
        return model
    return next(question.module for question in models.questions[model] if question.kind is Kind.CHECK)
