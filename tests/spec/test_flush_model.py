"""Goal: the included models hold and detect their mutants. Method: real TLC, as `mqproof check` runs it.

The modules that show a counterexample in detail run it, so that this one does not run it again.
"""

from collections.abc import Collection

import pytest

from mqproof.report.model import Verdict
from mqproof.spec import mutants
from mqproof.spec.model_file import Kind, Profile, load
from mqproof.spec.models import ask_all
from tests.spec import test_delivery_models, test_routing_model

MODELS = load()


SHOWN = {*test_delivery_models.EXPECTED_ACTIONS, *test_routing_model.EXPECTED_ACTIONS}
"""The runs of the profile smoke that other modules judge."""


def check_that_all_runs_hold(profile: Profile, *, without: Collection[str] = ()) -> None:
    runs = [
        q
        for questions in MODELS.questions.values()
        for q in questions
        if profile in q.profiles and q.name not in without
    ]
    results = [result for answer in ask_all(MODELS, runs) for result in answer.results]
    assert results
    assert [result for result in results if result.verdict is not Verdict.HELD] == []


def test_every_run_of_the_smoke_profile_holds() -> None:
    check_that_all_runs_hold("smoke", without=SHOWN)


@pytest.mark.deep("TLC explores every model in the profile ci")
def test_every_run_of_the_ci_profile_holds() -> None:
    check_that_all_runs_hold("ci")


@pytest.mark.deep("a run of TLC for each mutant of every model")
def test_every_tla_mutant_is_detected() -> None:
    caught = list(mutants.run(models=MODELS))
    kinds = [question.kind for questions in MODELS.questions.values() for question in questions]
    assert len(caught) == kinds.count(Kind.MUTANT) > 0
    assert [result for result in caught if result.verdict is not Verdict.HELD] == []
