"""Behaviours of Broadcast on our consumers and their files: no difference; injected defects differ."""

from typing import Any

import pytest

from mqproof.conformance.behaviours.corpus import Script
from mqproof.conformance.behaviours.outcomes import behaviours
from mqproof.conformance.mutants import workload
from mqproof.conformance.mutants.mutant import Mutant
from mqproof.conformance.mutants.replacement import injected
from mqproof.impl.client.model import MessageQueue
from mqproof.reference.models import MODELS
from tests.conformance.behaviours.sampled import on_ours, scripts

STATES, STEPS = 99, 215


async def _only_set(offsets: Any, queue: MessageQueue, offset: int) -> None:
    offsets.set(queue, offset)


async def _nothing_found(_: Any, _queue: MessageQueue) -> None:
    return None


DEFECTS = [
    *(workload.MUTANTS[name] for name in ("one-too-many-committed", "cached-messages-dropped")),
    Mutant(
        "not-written-at-start",
        "a consumer does not store where it begins until it stores its progress",
        "DELIV-11",
        "mqproof.impl.client.consuming.offset_store:Offsets.begin",
        _only_set,
    ),
    Mutant(
        "file-not-read",
        "a consumer does not read its file when it starts",
        "DELIV-11",
        "mqproof.impl.client.consuming.offset_store:FileOffsets.load",
        _nothing_found,
    ),
]


@pytest.fixture(scope="module")
def whole() -> list[Script]:
    return [*scripts("Broadcast"), *behaviours("Broadcast")]


def test_our_consumers_follow_the_model_in_every_state_and_step(whole: list[Script]) -> None:
    seen = on_ours("Broadcast", whole)
    assert [failure.why for failure in seen.failures] == []
    assert (len(seen.states), len(seen.steps)) == (STATES, STEPS)
    assert seen.actions.keys() == MODELS["Broadcast"].actions.keys()
    assert set(+seen.refused) == {"Begin", "Persist"}
    assert not seen.impossible


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_of_consumers_or_files_is_detected(defect: Mutant, whole: list[Script]) -> None:
    with injected(defect):
        assert on_ours("Broadcast", whole).failures
