"""The suite hostile is judged by its mutants: for each limit that is removed, an attack succeeds."""

import pytest

from mqproof.conformance.hostile.attacks import ATTACKS
from mqproof.conformance.hostile.checkers import CHECKERS
from mqproof.conformance.mutants.hostile import ATTACKS_OF, MUTANTS
from mqproof.conformance.registry import mutant_judge
from mqproof.report.model import Verdict

QUICK = (
    *("header-of-any-size", "nearest-value-used", "topics-without-shares"),
    *("viewed-without-permission", "handshake-skipped", "rest-of-answer-skipped"),
)
DEEP = pytest.mark.deep("a missing limit often shows only as seconds of silence")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [DEEP]) for name in MUTANTS]
)
def test_an_attack_of_the_named_invariant_succeeds_against_the_mutant(name: str) -> None:
    (result,) = mutant_judge.run([name])
    assert result.verdict is Verdict.HELD, result.detail
    assert result.id == MUTANTS[name].breaks


def test_each_mutant_has_an_attack_of_the_invariant_that_it_breaks() -> None:
    attacks = {one.name: one for one in ATTACKS}
    assert ATTACKS_OF.keys() == MUTANTS.keys()
    assert {name: attacks[ATTACKS_OF[name]].invariant for name in MUTANTS} == {
        name: mutant.breaks for name, mutant in MUTANTS.items()
    }


def test_every_invariant_of_the_suite_has_a_mutant() -> None:
    assert {mutant.breaks for mutant in MUTANTS.values()} == set(CHECKERS)
