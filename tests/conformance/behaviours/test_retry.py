"""Behaviours of Retry on our broker and consumer: no difference; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import retry
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import drawn, on_ours, sample, scripts

STATES, STEPS = 837, 1762
LARGER = ["MCRetry_two_faults", "MCRetry_two", "MCRetry_ladder", "MCRetry_copies", "MCRetry_together"]
DEEP = pytest.mark.deep("400 behaviours; 15 are drawn in every run")
NOT_IN_REACH = {
    "nothing-sent-back": "a member sends back only what it has received",
    "delayed-beyond-the-queue": "the progress is written after the log was flushed, so it is in the log",
    "delayed-cut-not-written": "as above",
}
"""Defects that the model's steps cannot show."""


DEFECTS = [
    *(mutant for name, mutant in retry.MUTANTS.items() if name not in NOT_IN_REACH),
    *retry.STEPPED.values(),
]


@pytest.fixture(scope="module")
def some() -> list[Script]:
    return sample("Retry", every=12, every_tried=1)


def test_our_broker_and_consumer_follow_the_model(some: list[Script]) -> None:
    seen = on_ours("Retry", some)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 300
    assert seen.actions.keys() == MODELS["Retry"].actions.keys()
    assert (+seen.refused).keys() == {"Move", "Deliver", "Confirm"}
    assert not seen.impossible


@pytest.mark.parametrize(
    ("configuration", "count"),
    [
        ("MCRetry_two_faults", 15),
        *(pytest.param(name, 400, marks=DEEP) for name in LARGER),
    ],
)
def test_our_broker_and_consumer_follow_drawn_behaviours_of_larger_configurations(
    configuration: str, count: int
) -> None:
    seen = on_ours("Retry", drawn("Retry", configuration, count))
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > count


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_broker_and_consumer_take_every_step_of_the_model() -> None:
    seen = on_ours("Retry", scripts("Retry"))
    assert not seen.failures
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_broker_or_the_consumer_is_detected(defect: Mutant, some: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Retry", some).failures


def test_every_defect_that_is_left_out_exists() -> None:
    assert NOT_IN_REACH.keys() <= retry.MUTANTS.keys()
