"""Goal: the properties and probes of a model without a reference model judge its mutants."""

import shutil
from pathlib import Path

import pytest

from mqproof.spec.model_file import ModelFileError, load
from mqproof.spec.mutation.judge import Judge, Noticed
from mqproof.spec.mutation.operators import mutants
from mqproof.spec.mutation.own_model import roots, subject

EXAMPLE = Path(__file__).parents[3] / "examples" / "tla"
MODELS = load(EXAMPLE / "models.toml")


def test_the_actions_of_the_next_state_relation_are_selected_for_mutation() -> None:
    assert set(roots(MODELS, "Lock")) >= {"Next", "Request", "Grant", "Release"}
    tested = subject(MODELS, "Lock", ("mutation",))
    assert (tested.module, [run.name for run in tested.stages[0].runs]) == ("Lock", ["Lock"])
    assert tested.stages[0].spaces == ()


def test_a_mutant_is_detected_by_a_property_or_by_a_probe_or_not_at_all() -> None:
    tested = subject(MODELS, "Lock", ("mutation",))
    made = {mutant.id: mutant for mutant in mutants(tested.text, *roots(MODELS, "Lock"))}
    judge = Judge(tested)
    with_property = judge.judge(made["Lock.Grant.guard.1"], tested.stages[0])
    with_probe = judge.judge(made["Lock.Request.unchanged.1"], tested.stages[0])
    undetected = judge.judge(made["Lock.Request.guard.2"], tested.stages[0])
    assert [each.noticed for each in (with_property, with_probe, undetected)] == [
        Noticed.PROPERTY,
        Noticed.WITNESS,
        Noticed.NOT,
    ]


def test_a_profile_without_runs_is_rejected(tmp_path: Path) -> None:
    place = Path(shutil.copytree(EXAMPLE, tmp_path / "e")) / "models.toml"
    place.write_text(place.read_text(encoding="utf-8").replace('"mutation", ', ""), encoding="utf-8")
    with pytest.raises(ModelFileError, match="no run that must hold has the profile mutation"):
        subject(load(place), "Lock", ("mutation",))
