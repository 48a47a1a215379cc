"""Behaviours of QueueChoice on our producer: there is no difference, and injected defects cause one."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants.producers import MUTANTS, STEPPED
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 11_598, 80_982
DEFECTS = {name: each for name, each in MUTANTS.items() if "queue_choice" in each.where} | STEPPED
"""The model has no bodies or properties, so mutants of what a send contains are not among them."""
EVERY = 150


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    """Return a sample with the behaviours of outcomes, some of which have two queues per broker."""
    return [*scripts("QueueChoice", EVERY), *behaviours("QueueChoice")]


def test_our_producer_follows_the_model(sample: list[Script]) -> None:
    seen = on_ours("QueueChoice", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    assert seen.actions.keys() == MODELS["QueueChoice"].actions.keys()
    assert {"Elsewhere", "RouteChanges", "Tick"} <= (+seen.refused).keys()
    assert not seen.impossible


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_producer_takes_every_step_of_the_model() -> None:
    seen = on_ours("QueueChoice", scripts("QueueChoice"))
    assert (len(seen.failures), len(seen.impossible)) == (0, 0)
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_the_queue_choice_is_detected(name: str, sample: list[Script]) -> None:
    with injected(DEFECTS[name]):
        assert on_ours("QueueChoice", sample).failures
