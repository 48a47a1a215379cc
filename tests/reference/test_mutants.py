"""Each invariant of the reference models detects a mutant, so no invariant is vacuous."""

from typing import Any

import pytest

from mqproof.reference import mutants
from mqproof.reference.model import Model
from mqproof.reference.models import MODELS
from mqproof.report.model import Verdict

SLOW = {"NotCompared", "CleanExitTooEarly", "RecoveredNotSynced"}
DEEP = pytest.mark.deep("1 to 4 CPU seconds; the same invariant detects another mutant in every run")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=DEEP if name in SLOW else ()) for name in mutants.MUTANTS]
)
def test_each_mutant_is_detected_by_the_invariant_it_must_violate(name: str) -> None:
    (result,) = mutants.run((name,))
    assert result.verdict is Verdict.HELD, result.detail


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_each_invariant_of_a_model_has_a_mutant(model: Model[Any, Any]) -> None:
    checked = {*model.invariants, *model.step_invariants, *model.liveness}
    caught = {m.invariant for m in mutants.MUTANTS.values() if m.model.name == model.name}
    assert checked == caught
