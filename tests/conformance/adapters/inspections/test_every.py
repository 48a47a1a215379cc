"""Our servers pass each inspection, and each inspection has a mutant that it detects."""

import pytest

from mqproof.conformance.adapters.inspections import site
from mqproof.conformance.adapters.inspections.every import EVERY
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, inspect
from mqproof.conformance.engine.targets import EndlessError
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


async def _endless(_: Site) -> None:
    while True:
        pass


def test_an_inspection_that_computes_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "_SECONDS_MAX", 0.05)
    with pytest.raises(EndlessError, match="processor time"):
        inspect(Inspection("endless", _endless))
