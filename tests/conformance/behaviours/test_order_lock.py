"""Behaviours of OrderLock on our lock table and orderly consumers: no difference; injected defects differ."""

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import ordering
from mqproof.conformance.mutants.order_lock import MUTANTS
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 12_908, 72_910
EVERY = 150
NOT_OF_ONE_QUEUE = {"all-or-nothing", "locks-end-with-connections"}


@pytest.fixture(scope="module")
def whole() -> list[Script]:
    return scripts("OrderLock")


@pytest.fixture(scope="module")
def sample(whole: list[Script]) -> list[Script]:
    """Return a sample with all behaviours that end with disabled actions, so that each can be attempted."""
    ends = [script for script in whole if script.disabled_at == len(script.steps)]
    return [*whole[::EVERY], *ends, *behaviours("OrderLock")]


def test_our_broker_and_consumers_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("OrderLock", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1500
    assert seen.actions.keys() == MODELS["OrderLock"].actions.keys()
    assert {"Gain", "Drop", "Ask", "Begin", "UnlockQueue", "Restart"} <= (+seen.refused).keys()
    assert set(seen.impossible) <= {"UnlockQueue", "Ask"}


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_code_takes_nearly_every_step_of_the_model(whole: list[Script]) -> None:
    """Counts the reached states and steps.

    The remaining steps start with the return of a lock whose grant the member never received, or with a lock
    request while the listener that held the lock is still active.
    """
    seen = on_ours("OrderLock", whole)
    assert not seen.failures
    assert len(seen.states) == STATES
    assert len(seen.steps) >= 70_800  # of 72,910
    assert len(seen.steps) < STEPS


@pytest.mark.parametrize("name", [*MUTANTS, *sorted(ordering.MUTANTS.keys() - NOT_OF_ONE_QUEUE)])
def test_a_defect_of_locks_or_members_is_detected(name: str, sample: list[Script]) -> None:
    with injected({**ordering.MUTANTS, **MUTANTS}[name]):
        assert on_ours("OrderLock", sample).failures
