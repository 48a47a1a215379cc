"""Goal: mutants of a model without a reference are judged by its properties and probes."""

import shutil
from pathlib import Path

import pytest

from mqproof.spec.model_file import ModelFileError, load
from mqproof.spec.mutation.judge import Judge, Noticed
from mqproof.spec.mutation.operators import mutants
from mqproof.spec.mutation.own_model import roots, subject

EXAMPLE = Path(__file__).parents[3] / "examples" / "tla"
MODELS = load(EXAMPLE / "models.toml")


def test_the_actions_of_the_next_state_relation_are_mutated() -> None:
    assert set(roots(MODELS, "Lock")) >= {"Next", "Request", "Grant", "Release"}
    asked = subject(MODELS, "Lock", ("mutation",))
    assert (asked.module, [run.name for run in asked.stages[0].runs]) == ("Lock", ["Lock"])
    assert asked.stages[0].spaces == ()


def test_properties_notice_and_so_do_probes() -> None:
    asked = subject(MODELS, "Lock", ("mutation",))
    made = {mutant.id: mutant for mutant in mutants(asked.text, *roots(MODELS, "Lock"))}
    judge = Judge(asked)
    by_property = judge.judge(made["Lock.Grant.guard.1"], asked.stages[0])
    by_probe = judge.judge(made["Lock.Request.unchanged.1"], asked.stages[0])
    unnoticed = judge.judge(made["Lock.Request.guard.2"], asked.stages[0])
    assert [each.noticed for each in (by_property, by_probe, unnoticed)] == [
        Noticed.PROPERTY,
        Noticed.WITNESS,
        Noticed.NOT,
    ]


def test_a_profile_without_runs_is_refused(tmp_path: Path) -> None:
    place = Path(shutil.copytree(EXAMPLE, tmp_path / "e")) / "models.toml"
    place.write_text(place.read_text(encoding="utf-8").replace('"mutation", ', ""), encoding="utf-8")
    with pytest.raises(ModelFileError, match="no run that must hold has the profile mutation"):
        subject(load(place), "Lock", ("mutation",))
