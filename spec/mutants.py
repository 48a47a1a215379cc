"""The broken designs in tla/mutants/, each of which TLC must catch by the invariant named for it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mqproof.report.model import Result
from mqproof.spec.model_file import Kind, Models, Question, load
from mqproof.spec.models import ask_each


def names() -> tuple[str, ...]:
    """Return the names of the mutants, in the order of models.toml."""
    return tuple(_questions(load()))


def run(chosen: Sequence[str] = (), models: Models | None = None) -> Iterator[Result]:
    """Yield a result for each mutant, or for each chosen one: HELD means that it was caught.

    Raises:
        TlcError: TLC gave no verdict. KeyError: there is no mutant of a chosen name.
    """
    models = models or load()
    questions = _questions(models)
    for answer in ask_each(models, [questions[name] for name in chosen or questions]):
        (result,) = answer.results
        yield replace(result, name=answer.question.name)


def _questions(models: Models) -> dict[str, Question]:
    of_models = (q for questions in models.questions.values() for q in questions)
    return {question.name: question for question in of_models if question.kind is Kind.MUTANT}
