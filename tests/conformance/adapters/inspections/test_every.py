"""Our servers pass each inspection, and each inspection has a mutant that it detects."""

import pytest

from mqproof.conformance.adapters.inspections.every import EVERY
from mqproof.conformance.adapters.inspections.site import CODES, inspect
from mqproof.conformance.mutants.inspections import INSPECTIONS, MUTANTS
from mqproof.conformance.mutants.replacement import injected
from mqproof.impl.remoting.codes import RequestCode


@pytest.mark.parametrize("name", EVERY)
def test_our_servers_pass_the_inspection(name: str) -> None:
    assert [witness.text for witness in inspect(EVERY[name])] == []


@pytest.mark.parametrize("name", MUTANTS)
def test_the_inspection_of_a_mutant_detects_it(name: str) -> None:
    with injected(MUTANTS[name]):
        assert inspect(EVERY[INSPECTIONS[name]])


def test_each_inspection_has_a_mutant() -> None:
    assert MUTANTS.keys() == INSPECTIONS.keys()
    assert set(INSPECTIONS.values()) == EVERY.keys()


def test_the_codes_of_the_documentation_are_those_of_our_servers() -> None:
    ours = {code.name: code.value for code in RequestCode}
    assert {name: code for name, code in CODES.items() if name in ours} == {
        name: code for name, code in ours.items() if name in CODES
    }
