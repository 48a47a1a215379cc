"""Behaviours of Tracing on our client: no difference; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import tracing
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import drawn, on_ours, sample

EVERY = 20
LARGER = "MCTracing_two"
"""With two sends."""


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return [*sample("Tracing", EVERY, EVERY), *drawn("Tracing", LARGER, 100)]


def test_our_client_follows_the_model(some: list[Script]) -> None:
    seen = on_ours("Tracing", some)
    assert [failure.why for failure in seen.failures] == []
    assert seen.actions.keys() == MODELS["Tracing"].actions.keys()
    assert not seen.impossible
    assert "Take" in +seen.refused


@pytest.mark.parametrize("name", sorted(tracing.MUTANTS))
def test_a_defect_of_the_client_is_detected(name: str, some: list[Script]) -> None:
    with injected(tracing.MUTANTS[name]):
        assert on_ours("Tracing", some).failures
