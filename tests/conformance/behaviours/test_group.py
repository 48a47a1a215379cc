"""Behaviours of Group on our broker and consumers: no difference, and injected defects cause one."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import consumers, delivery, offsets, workload
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

EVERY = 60


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return [*scripts("Group", EVERY), *behaviours("Group")]


def test_our_broker_and_consumers_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("Group", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    assert seen.actions.keys() == MODELS["Group"].actions.keys()
    assert {"Start", "Deliver", "CommitOffset"} <= (+seen.refused).keys()


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(900)
def test_our_broker_and_consumers_take_most_steps_of_the_model() -> None:
    """Most remaining steps start with an acknowledgement by a broker without the request."""
    seen = on_ours("Group", scripts("Group"))
    assert not seen.failures
    assert len(seen.states) >= 6970  # of 7,368
    assert len(seen.steps) >= 40_000  # of 54,590


@pytest.mark.parametrize(
    "name",
    [
        "reset-not-obeyed",
        "taken-over-too-low",
        "taken-over-too-high",
        "group-begins-ahead",
        "group-begins-behind",
        "offsets-not-read-at-start",
        "larger-commit-ignored",
        "beyond-goes-to-zero",
        "one-too-many",
        "one-too-many-committed",
        "everybody-owns-everything",
        "cached-messages-dropped",
    ],
)
def test_a_defect_of_the_broker_or_a_consumer_is_detected(name: str, sample: list[Script]) -> None:
    of_suites = (consumers, delivery, offsets, workload)
    known = {name: mutant for each in of_suites for name, mutant in each.MUTANTS.items()}
    with injected(known[name]):
        assert on_ours("Group", sample).failures
