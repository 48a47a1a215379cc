"""Behaviours of OrderLock on our lock table and orderly consumers: any difference counts, and planted defects
differ."""

import pytest

from conformance.behaviours.corpus import Script, file_of, read, read_lines
from conformance.behaviours.outcomes import behaviours
from conformance.behaviours.replay import Replayed, replay
from conformance.behaviours.target import resolve
from conformance.planting import planted
from conformance.targets.brokers import ordering_mutants
from conformance.targets.lock_mutants import MUTANTS
from reference.models import MODELS

STATES, STEPS = 12_908, 72_910
EVERY = 150
NOT_OF_ONE_QUEUE = {"all-or-nothing", "locks-end-with-connections"}


def on_ours(chosen: list[Script]) -> Replayed:
    make = resolve("impl", "OrderLock")
    assert make is not None
    return replay(make, chosen, failures_max=1)


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    return list(read(read_lines(file_of("OrderLock")), "OrderLock"))


@pytest.fixture(scope="module")
def sample(scripts: list[Script]) -> list[Script]:
    """With those that end with what is disabled: there everything can be tried."""
    ends = [script for script in scripts if script.disabled_at == len(script.steps)]
    return [*scripts[::EVERY], *ends, *behaviours("OrderLock")]


def test_our_broker_and_consumers_do_what_the_model_does(sample: list[Script]) -> None:
    seen = on_ours(sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1500
    assert seen.actions.keys() == MODELS["OrderLock"].actions.keys()
    assert {"Gain", "Drop", "Ask", "Begin", "UnlockQueue", "Restart"} <= (+seen.refused).keys()
    assert set(seen.impossible) <= {"UnlockQueue", "Ask"}


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_they_take_nearly_every_step_of_the_model(scripts: list[Script]) -> None:
    """What is left begins with giving back a lock that the member never heard of, or with asking for it while
    the listener is at work that had it."""
    seen = on_ours(scripts)
    assert not seen.failures
    assert len(seen.states) == STATES
    assert len(seen.steps) >= 70_800  # of 72,910
    assert len(seen.steps) < STEPS


@pytest.mark.parametrize("name", [*MUTANTS, *sorted(ordering_mutants.MUTANTS.keys() - NOT_OF_ONE_QUEUE)])
def test_a_defect_of_locks_or_members_is_seen(name: str, sample: list[Script]) -> None:
    with planted({**ordering_mutants.MUTANTS, **MUTANTS}[name]):
        assert on_ours(sample).failures
