"""Behaviours of Delivery on our broker: there is no difference, and injected defects cause one."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.mutants import delivery, flush, offsets
from mqproof.conformance.mutants.replacement import injected
from tests.conformance.behaviours.sampled import on_ours, scripts

EVERY = 20


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return scripts("Delivery", EVERY)


def test_our_broker_keeps_promised_messages(sample: list[Script]) -> None:
    seen = on_ours("Delivery", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 600
    assert {"Acknowledge", "CorrectOffset", "Reset", "Lose", "RollBack", "Restart"} <= seen.actions.keys()
    assert {"CommitOffset", "CorrectOffset", "Deliver", "Reset"} <= (+seen.refused).keys()


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
def test_our_broker_takes_most_steps_of_the_model() -> None:
    """Counts the reached states and steps.

    No broker takes the remaining steps: it corrects a reader's offset to the end only, and it writes no
    offset that was not committed.
    """
    seen = on_ours("Delivery", scripts("Delivery"))
    assert not seen.failures
    assert len(seen.states) >= 1880  # of 1,946
    assert len(seen.steps) >= 7300  # of 11,352


@pytest.mark.parametrize(
    "name",
    [
        "ack-before-flush",
        "last-record-forgotten",
        "queue-not-cut",
        "offsets-counted-from-zero",
        "not-dispatched-again",
        "dispatch-before-flush",
        "commit-goes-back",
        "larger-commit-ignored",
        "beyond-goes-to-zero",
        "one-too-many",
        "reset-ignored",
        "group-begins-ahead",
        "group-begins-behind",
        "offsets-not-read-at-start",
    ],
)
def test_a_defect_of_the_broker_is_detected(name: str, sample: list[Script]) -> None:
    known = {**flush.MUTANTS, **offsets.MUTANTS, **delivery.MUTANTS}
    with injected(known[name]):
        assert on_ours("Delivery", sample).failures
