"""Behaviours of Timers on our broker: no difference; injected defects differ.

The broker restarts, or a slave takes over, between any two steps.
"""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import timers
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import drawn, on_ours, sample, scripts

STATES, STEPS = 9671, 42_173
LARGER = ["MCTimers_two", "MCTimers_two_points", "MCTimers_points"]
DEEP = pytest.mark.deep("400 behaviours; 15 are drawn in every run")

DEFECTS = [*timers.MUTANTS.values(), *timers.STEPPED.values()]


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return sample("Timers", every=500, every_tried=8)


def test_our_broker_follows_the_model(some: list[Script]) -> None:
    seen = on_ours("Timers", some)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 500
    assert seen.actions.keys() == MODELS["Timers"].actions.keys()
    assert (+seen.refused).keys() == {"Send", "Deliver", "Recall", "Delete"}
    assert set(seen.impossible) <= {"Delete", "Crash", "Recall"}


@pytest.mark.parametrize(
    ("configuration", "count"),
    [
        ("MCTimers_two", 15),
        *(pytest.param(name, 400, marks=DEEP) for name in LARGER),
    ],
)
def test_our_broker_follows_drawn_behaviours(configuration: str, count: int) -> None:
    seen = on_ours("Timers", drawn("Timers", configuration, count))
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > count


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_broker_takes_most_steps_of_the_model() -> None:
    """Count the reached states and steps.

    The others need the loss of what a start flushes, or the recall of a message that is due.
    """
    seen = on_ours("Timers", scripts("Timers"))
    assert not seen.failures
    assert 5900 < len(seen.states) <= STATES
    assert 21_500 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_broker_is_detected(defect: Mutant, some: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Timers", some).failures
