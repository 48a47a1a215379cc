"""Goal: the included models hold and detect their mutants. Method: real TLC, as `mqproof check` runs it."""

import pytest

from mqproof.report.model import Verdict
from mqproof.spec import mutants
from mqproof.spec.model_file import Kind, Profile, load
from mqproof.spec.models import ask_all

MODELS = load()


def check_that_all_runs_hold(profile: Profile) -> None:
    runs = [q for questions in MODELS.questions.values() for q in questions if profile in q.profiles]
    results = [result for answer in ask_all(MODELS, runs) for result in answer.results]
    assert results
    assert [result for result in results if result.verdict is not Verdict.HELD] == []


def test_every_run_of_the_smoke_profile_holds() -> None:
    check_that_all_runs_hold("smoke")


@pytest.mark.deep("TLC explores every model in the profile ci")
def test_every_run_of_the_ci_profile_holds() -> None:
    check_that_all_runs_hold("ci")


@pytest.mark.deep("a run of TLC for each mutant of every model")
def test_every_tla_mutant_is_detected() -> None:
    caught = list(mutants.run(models=MODELS))
    kinds = [question.kind for questions in MODELS.questions.values() for question in questions]
    assert len(caught) == kinds.count(Kind.MUTANT) > 0
    assert [result for result in caught if result.verdict is not Verdict.HELD] == []
