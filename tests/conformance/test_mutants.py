"""The suite is judged by what it catches: every planted defect, by the invariant named for it."""

import pytest

from conformance import mutants
from conformance.checkers import CHECKERS
from conformance.session import SPEC_1
from conformance.targets.mutants import MUTANTS
from report.model import Verdict


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_caught_by_the_invariant_named_for_it(name: str) -> None:
    (result,) = mutants.run([name])
    assert result.verdict is Verdict.HELD, f"{result.detail}: not noticed in {result.counts}"
    assert result.id == MUTANTS[name].breaks


def test_every_invariant_that_the_suite_checks_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == {*CHECKERS, SPEC_1}


def test_a_mutant_that_nobody_looks_for_long_enough_survives() -> None:
    (result,) = mutants.run(["torn-text-accepted"], examples_max=1)
    assert result.verdict is Verdict.VIOLATED
    assert result.counts == {"examples": 1, "examples_max": 1}
