"""Every invariant of the reference has a mutant that it catches: no check of it is vacuous."""

import pytest

from reference import flush, mutants
from report.model import Verdict


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_the_mutant_is_caught_by_the_invariant_named_for_it(name: str) -> None:
    (result,) = mutants.run((name,))
    assert result.verdict is Verdict.HELD, result.detail


def test_every_invariant_has_a_mutant() -> None:
    checked = {*flush.INVARIANTS, *flush.STEP_INVARIANTS}
    assert checked == {mutant.invariant for mutant in mutants.MUTANTS.values()}
