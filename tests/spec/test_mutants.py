"""Running all TLA+ mutants gives one result per mutant, under the mutant's name."""

import pytest

from mqproof.report.model import Verdict
from mqproof.spec import mutants
from tests.spec.test_models import COUNTER


def test_each_mutant_has_one_result_with_its_name() -> None:
    (result,) = mutants.run(models=COUNTER)
    assert (result.layer, result.verdict, result.name) == ("tla", Verdict.HELD, "Greedy")


def test_an_unknown_name_of_a_mutant_is_an_error() -> None:
    with pytest.raises(KeyError, match="Lost"):
        list(mutants.run(["Lost"], COUNTER))
