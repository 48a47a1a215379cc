"""Behaviours of Rebalance on our table of members and consumers: no difference; injected defects differ."""

from collections.abc import Sequence
from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import workload
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 4000, 28_560
EVERY = 60


def _equal_blocks(queues: Sequence[Any], ids: Sequence[str], own: str) -> list[Any]:
    each = len(queues) // len(ids)
    return list(queues[ids.index(own) * each :][:each]) if own in ids else []


def _never_removed(*_: Any) -> set[str]:
    return set()


async def _kept(*_: Any) -> None:
    pass


DEFECTS = [
    workload.MUTANTS["everybody-owns-everything"],
    Mutant(
        "rest-not-assigned",
        "queues that remain after the division have no owner",
        "DELIV-6",
        "mqproof.impl.client.consuming.allocation:averagely",
        _equal_blocks,
    ),
    Mutant(
        "dead-member-listed",
        "a broker keeps a member whose connection is closed",
        "DELIV-6",
        "mqproof.impl.broker.state.clients:ClientTable.channel_closed",
        _never_removed,
    ),
    Mutant(
        "nothing-given-up",
        "a consumer keeps the queues that a rebalance assigned to another member",
        "DELIV-6",
        "mqproof.impl.client.consuming.push_consumer:PushConsumer.lose",
        _kept,
    ),
]


@pytest.fixture(scope="module")
def sample() -> list[Script]:
    return [*scripts("Rebalance", EVERY), *behaviours("Rebalance")]


def test_our_broker_and_consumers_follow_the_model(sample: list[Script]) -> None:
    seen = on_ours("Rebalance", sample)
    assert [failure.why for failure in seen.failures] == []
    assert len(seen.steps) > 1000
    assert seen.actions.keys() == MODELS["Rebalance"].actions.keys()
    assert set(+seen.refused) == {"Heartbeat", "Poll", "Rebalance"}
    assert set(seen.impossible) <= {"Heartbeat", "Rebalance", "Forget", "Restart"}


@pytest.mark.deep("replays every behaviour of the model; a sample is replayed in every run")
@pytest.mark.timeout(600)
def test_our_code_takes_nearly_every_step_of_the_model() -> None:
    """Count the reached states and steps.

    The remaining steps follow a rebalance with a broker that knows no member of the group: in the model the
    member then has no queue, and our consumer keeps its share until a broker answers.
    """
    seen = on_ours("Rebalance", scripts("Rebalance"))
    assert not seen.failures
    assert STATES - 400 < len(seen.states) <= STATES
    assert 25_000 < len(seen.steps) < STEPS


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_the_table_or_a_consumer_is_detected(defect: Mutant, sample: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Rebalance", sample).failures
