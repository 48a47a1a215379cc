"""Goal: the recorded mutation scores agree with the README and belong to the current models."""

from pathlib import Path

import pytest

from mqproof.reference.equivalence.mutate import roots, subject
from mqproof.reference.models import MODELS
from mqproof.spec.model_file import MODELS_FILE, load
from mqproof.spec.mutation.operators import mutants
from mqproof.spec.mutation.score import markdown, recorded, survivors, unexplained

RECORDED = recorded()


def test_each_model_has_a_recorded_score_and_the_readme_shows_the_scores() -> None:
    assert set(RECORDED) == set(MODELS)
    readme = MODELS_FILE.with_name("README.md").read_text(encoding="utf-8")
    shown = "\n".join(line.strip() for line in readme.splitlines())
    assert markdown(list(RECORDED.values())) in shown


@pytest.mark.parametrize("model", MODELS)
def test_the_recorded_mutants_are_the_current_mutants_of_the_model(model: str) -> None:
    models = load()
    tested = subject(models, MODELS[model], ("mutation",))
    made = {m.id for m in mutants(tested.text, *roots(models, model)) if m.number == 1}
    assert {judgement.mutant for judgement in RECORDED[model].judgements} == made


def test_exactly_the_surviving_mutants_are_explained() -> None:
    judgements = [judgement for score in RECORDED.values() for judgement in score.judgements]
    assert unexplained(judgements, survivors()) == []


def test_without_a_file_of_scores_no_scores_are_recorded(tmp_path: Path) -> None:
    assert recorded(tmp_path / "none.json") == {}
