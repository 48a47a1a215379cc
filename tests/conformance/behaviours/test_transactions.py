"""Behaviours of Transactions on our broker: no difference; injected defects differ.

The broker restarts, or a slave takes over, between any two steps. Each check ends with an exception.
"""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import transactions
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import drawn, on_ours, sample, scripts

STATES, STEPS = 3645, 21_060
LARGER = ["MCTransactions_two", "MCTransactions_checks"]
DEEP = pytest.mark.deep("400 behaviours; 15 are drawn in every run")

DEFECTS = [*transactions.MUTANTS.values(), *transactions.STEPPED.values()]


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return sample("Transactions", every=400, every_tried=3)


def test_our_broker_follows_the_model(some: list[Script]) -> None:
    seen = on_ours("Transactions", some)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 500
    assert seen.actions.keys() == MODELS["Transactions"].actions.keys()
    assert (+seen.refused).keys() == {"End", "Check", "Discard", "WriteOperations", "Advance"}
    assert set(seen.impossible) <= {"Advance", "Crash"}


@pytest.mark.parametrize(
    ("configuration", "count"),
    [
        ("MCTransactions_two", 15),
        *(pytest.param(name, 400, marks=DEEP) for name in LARGER),
    ],
)
def test_our_broker_follows_drawn_behaviours(configuration: str, count: int) -> None:
    seen = on_ours("Transactions", drawn("Transactions", configuration, count))
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > count


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_broker_takes_most_steps_of_the_model() -> None:
    """Count the reached states and steps.

    The others need a progress without the operation before it, or a loss of what the broker flushes with it.
    """
    seen = on_ours("Transactions", scripts("Transactions"))
    assert not seen.failures
    assert 3300 < len(seen.states) <= STATES
    assert 13_500 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_broker_is_detected(defect: Mutant, some: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Transactions", some).failures
