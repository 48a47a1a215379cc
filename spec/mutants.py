"""The broken designs in tla/mutants/, each of which TLC must catch by the invariant named for it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from report.model import Result
from spec.model_file import Kind, Models, load
from spec.models import ask


@cache
def _models() -> Models:
    return load()


def names() -> tuple[str, ...]:
    """The mutants, in the order of models.toml."""
    questions = (q for model in _models().questions.values() for q in model)
    return tuple(question.name for question in questions if question.kind is Kind.MUTANT)


def run(chosen: Sequence[str] = ()) -> Iterator[Result]:
    """A result for each mutant, or each that is named: HELD means that it was caught.

    Raises:
        TlcError: TLC gave no verdict.
    """
    for model in _models().questions.values():
        for question in model:
            if question.kind is Kind.MUTANT and (not chosen or question.name in chosen):
                (result,) = ask(_models(), question).results
                yield replace(result, name=question.name)
